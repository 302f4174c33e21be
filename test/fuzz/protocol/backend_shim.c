/*
 * backend_shim.c
 *		As much of a PostgreSQL backend as the module's client of the engine, and its bases, call.
 *
 * Their sources are compiled with PostgreSQL's own headers and linked with these
 * functions in place of its own.  They do what the client relies on: an error leaves
 * the statement and ends its memory contexts, whose callbacks release what is not
 * memory; each allocation is one of malloc's, so that the address sanitizer knows where
 * it ends.  A wait is the engine's turn, in the same thread, so that a script has the
 * same outcome each time.  Functions that the client calls only where it makes
 * references, which is not tried here, are left out; the linker is told so.
 *
 * Types are two: integer, and text, which stands for all types passed by reference.
 */
#include "postgres.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/memnodes.h"
#include "storage/fd.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"

#include "backend_shim.h"
#include "client/engine_start.h"
#include "client/engine_version.h"
#include "base/compat.h"
#include "base/extension.h"
#include "base/value.h"
#include "base/wait_event.h"

#undef fprintf
#undef vsnprintf

/* more than any sound statement of a script needs */
#define ALLOCATION_MOST ((Size) 1 << 28)

/* functions by their numbers */
#define FUNCTION_HASH	1
#define FUNCTION_EQUAL	2
#define FUNCTION_COMPARE 3

typedef struct Allocation
{
	struct Allocation *next;
	struct Allocation *before;
	MemoryContext context;
	Size		size;
} Allocation;

typedef struct Context
{
	MemoryContextData data;
	Allocation	allocations;	/* the head of a ring */
} Context;

MemoryContext CurrentMemoryContext;
volatile sig_atomic_t InterruptPending;
struct Latch *MyLatch;
int			max_files_per_process = 1000;
int			MyProcPid = 1;
int			DeadlockTimeout = 1000;
bool		log_lock_waits;
int			geonn_admission_timeout;
int			geonn_idle_session_timeout; /* each statement connects anew */
int			ParallelWorkerNumber = -1;

static sigjmp_buf *error_exit;
static char error_text[4096];
static int	external_files;
static TimestampTz clock_now;

Oid
GetSessionUserId(void)
{
	return 10;
}

/* integers and texts, which are the types here */
bool
geonn_equal_is_same(Oid type, Oid collation)
{
	(void) type;
	(void) collation;
	return true;
}

/* ---- errors ---- */

/* of the module's assertions, which a build with ASSERTIONS=1 has */
#undef ExceptionalCondition
#if PG_VERSION_NUM >= 160000
void
ExceptionalCondition(const char *condition, const char *file, int line)
#else
void
ExceptionalCondition(const char *condition, const char *kind pg_attribute_unused(), const char *file, int line)
#endif
{
	fprintf(stderr, "assertion failed: %s, in %s:%d\n", condition, file, line);
	abort();
}

bool
errstart(int level, const char *domain)
{
	(void) domain;
	return level >= ERROR;
}

bool
errstart_cold(int level, const char *domain)
{
	return errstart(level, domain);
}

void
errfinish(const char *file, int line, const char *function)
{
	(void) file;
	(void) line;
	(void) function;
	siglongjmp(*error_exit, 1);
}

int
errcode(int sqlstate)
{
	(void) sqlstate;
	return 0;
}

/* all texts are made, so that what they are made of is read */
#define MAKE_TEXT(text) \
	do { \
		va_list		arguments; \
		va_start(arguments, format); \
		vsnprintf(text, sizeof(text), format, arguments); \
		va_end(arguments); \
	} while (0)

int
errmsg(const char *format,...)
{
	MAKE_TEXT(error_text);
	return 0;
}

int
errmsg_internal(const char *format,...)
{
	MAKE_TEXT(error_text);
	return 0;
}

int
errdetail(const char *format,...)
{
	char		text[4096];

	MAKE_TEXT(text);
	return 0;
}

int
errhint(const char *format,...)
{
	char		text[4096];

	MAKE_TEXT(text);
	return 0;
}

const char *
backend_error(void)
{
	return error_text;
}

/* ---- memory ---- */

static void *
allocate(MemoryContext context, Size size)
{
	Allocation *allocation = size < ALLOCATION_MOST ?
		malloc(sizeof(Allocation) + size) : NULL;
	Allocation *head = &((Context *) context)->allocations;

	if (allocation == NULL)
		ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
	allocation->context = context;
	allocation->size = size;
	allocation->next = head->next;
	allocation->before = head;
	head->next->before = allocation;
	head->next = allocation;
	context->mem_allocated += size;
	return allocation + 1;
}

void
pfree(void *pointer)
{
	Allocation *allocation = (Allocation *) pointer - 1;

	allocation->next->before = allocation->before;
	allocation->before->next = allocation->next;
	allocation->context->mem_allocated -= allocation->size;
	free(allocation);
}

void *
palloc(Size size)
{
	return allocate(CurrentMemoryContext, size);
}

void *
repalloc_huge(void *pointer, Size size)
{
	Allocation *former = (Allocation *) pointer - 1;
	void	   *larger = allocate(former->context, size);

	memcpy(larger, pointer, Min(size, former->size));
	pfree(pointer);
	return larger;
}

void *
MemoryContextAllocZero(MemoryContext context, Size size)
{
	return memset(allocate(context, size), 0, size);
}

void *
palloc0(Size size)
{
	return MemoryContextAllocZero(CurrentMemoryContext, size);
}

void *
MemoryContextAlloc(MemoryContext context, Size size)
{
	return allocate(context, size);
}

/* as PostgreSQL has it: in place, so that an error of the comparison leaves nothing behind */
#define ST_SORT qsort_arg
#define ST_ELEMENT_TYPE_VOID
#define ST_COMPARATOR_TYPE_NAME qsort_arg_comparator
#define ST_COMPARE_RUNTIME_POINTER
#define ST_COMPARE_ARG_TYPE void
#define ST_SCOPE
#define ST_DEFINE
#include "lib/sort_template.h"

void *
palloc_extended(Size size, int flags)
{
	(void) flags;
	return palloc(size);
}

void *
MemoryContextAllocHuge(MemoryContext context, Size size)
{
	return allocate(context, size);
}

MemoryContext
AllocSetContextCreateInternal(MemoryContext parent, const char *name, Size least, Size first,
							  Size most)
{
	Context    *context = calloc(1, sizeof(Context));

	(void) least;
	(void) first;
	(void) most;
	context->data.name = name;
	context->data.parent = parent;
	context->allocations.next = context->allocations.before = &context->allocations;
	if (parent != NULL)
	{
		context->data.nextchild = parent->firstchild;
		parent->firstchild = &context->data;
	}
	return &context->data;
}

void
MemoryContextReset(MemoryContext context)
{
	Allocation *head = &((Context *) context)->allocations;

	while (context->firstchild != NULL)
		MemoryContextDelete(context->firstchild);
	while (context->reset_cbs != NULL)
	{
		MemoryContextCallback *callback = context->reset_cbs;

		context->reset_cbs = callback->next;
		callback->func(callback->arg);
	}
	while (head->next != head)
		pfree(head->next + 1);
}

void
MemoryContextDelete(MemoryContext context)
{
	MemoryContextReset(context);
	if (context->parent != NULL)
	{
		MemoryContext *link = &context->parent->firstchild;

		while (*link != context)
			link = &(*link)->nextchild;
		*link = context->nextchild;
	}
	free(context);
}

void
MemoryContextRegisterResetCallback(MemoryContext context, MemoryContextCallback *callback)
{
	callback->next = context->reset_cbs;
	context->reset_cbs = callback;
}

Size
MemoryContextMemAllocated(MemoryContext context, bool recurse)
{
	(void) recurse;
	return context->mem_allocated;
}

/* ---- waits ---- */

bool
AcquireExternalFD(void)
{
	external_files++;
	return true;
}

void
ReleaseExternalFD(void)
{
	external_files--;
}

void
ProcessInterrupts(void)
{
	InterruptPending = false;
	ereport(ERROR, (errcode(ERRCODE_QUERY_CANCELED), errmsg("canceled")));
}

void
backend_cancel(void)
{
	InterruptPending = true;
}

int
WaitLatchOrSocket(Latch *latch, int events, pgsocket socket, long timeout, uint32 wait_event)
{
	struct pollfd wait = {.fd = socket,.events = events & WL_SOCKET_READABLE ? POLLIN : POLLOUT};

	(void) latch;
	(void) timeout;
	(void) wait_event;
	engine_turn();
	return WL_LATCH_SET | (poll(&wait, 1, 0) == 1 ? events & WL_SOCKET_MASK : 0);
}

void
ResetLatch(Latch *latch)
{
	(void) latch;
}

uint32
geonn_wait_event(GeonnWait wait)
{
	return (uint32) wait;
}

/* geonn is switched on */
void
geonn_check_enabled(void)
{
}

int
geonn_engine_connect(pid_t *engine_pid)
{
	*engine_pid = 1;
	return engine_connect();
}

void
geonn_raise_other_version(const char *release, pid_t engine)
{
	ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					errmsg("engine %d is version %s", (int) engine, release)));
}

/* the clock goes on with each look at it */
TimestampTz
GetCurrentTimestamp(void)
{
	return clock_now += 500000;
}

long
TimestampDifferenceMilliseconds(TimestampTz from, TimestampTz to)
{
	return from < to ? (long) ((to - from) / 1000) : 0;
}

/* ---- types ---- */

/*
 * All keys have the hash that groups.c makes 0 of, so that a hostile engine needs no luck
 * to have keys compared.
 */
static Datum
hash_any(PG_FUNCTION_ARGS)
{
	(void) fcinfo;
	return UInt32GetDatum(0u - 0x9e3779b9u);
}

static Datum
equal_integers(PG_FUNCTION_ARGS)
{
	return BoolGetDatum(PG_GETARG_INT32(0) == PG_GETARG_INT32(1));
}

static Datum
compare_integers(PG_FUNCTION_ARGS)
{
	int32		a = PG_GETARG_INT32(0);
	int32		b = PG_GETARG_INT32(1);

	return Int32GetDatum((a > b) - (a < b));
}

static int
compare_bytes(Datum a, Datum b)
{
	const char *left = DatumGetPointer(a);
	const char *right = DatumGetPointer(b);
	Size		common = Min(VARSIZE_ANY_EXHDR(left), VARSIZE_ANY_EXHDR(right));
	int			order = memcmp(VARDATA_ANY(left), VARDATA_ANY(right), common);

	return order != 0 ? order :
		(VARSIZE_ANY_EXHDR(left) > common) - (VARSIZE_ANY_EXHDR(right) > common);
}

static Datum
equal_texts(PG_FUNCTION_ARGS)
{
	return BoolGetDatum(compare_bytes(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)) == 0);
}

static Datum
compare_texts(PG_FUNCTION_ARGS)
{
	return Int32GetDatum(compare_bytes(PG_GETARG_DATUM(0), PG_GETARG_DATUM(1)));
}

TypeCacheEntry *
lookup_type_cache(Oid type, int flags)
{
	static TypeCacheEntry entries[2];
	TypeCacheEntry *entry = &entries[type == TEXTOID];

	(void) flags;
	entry->type_id = entry->btree_opintype = type;
	entry->lt_opr = entry->btree_opf = 1;
	entry->hash_proc_finfo.fn_oid = FUNCTION_HASH;
	entry->hash_proc_finfo.fn_addr = hash_any;
	entry->eq_opr_finfo.fn_oid = FUNCTION_EQUAL;
	entry->eq_opr_finfo.fn_addr = type == TEXTOID ? equal_texts : equal_integers;
	entry->cmp_proc_finfo.fn_oid = FUNCTION_COMPARE;
	entry->cmp_proc_finfo.fn_addr = type == TEXTOID ? compare_texts : compare_integers;
	return entry;
}

Oid
get_opfamily_proc(Oid family, Oid left, Oid right, int16 number)
{
	(void) family;
	(void) right;
	(void) number;
	return left;				/* for fmgr_info: the comparison of this type */
}

void
fmgr_info(Oid function, FmgrInfo *information)
{
	*information = lookup_type_cache(function, 0)->cmp_proc_finfo;
}

void
fmgr_info_copy(FmgrInfo *copy, FmgrInfo *information, MemoryContext context)
{
	(void) context;
	*copy = *information;
}

Datum
FunctionCall1Coll(FmgrInfo *function, Oid collation, Datum first)
{
	LOCAL_FCINFO(call, 1);

	InitFunctionCallInfoData(*call, function, 1, collation, NULL, NULL);
	call->args[0].value = first;
	call->args[0].isnull = false;
	return FunctionCallInvoke(call);
}

Datum
FunctionCall2Coll(FmgrInfo *function, Oid collation, Datum first, Datum second)
{
	LOCAL_FCINFO(call, 2);

	InitFunctionCallInfoData(*call, function, 2, collation, NULL, NULL);
	call->args[0].value = first;
	call->args[0].isnull = false;
	call->args[1].value = second;
	call->args[1].isnull = false;
	return FunctionCallInvoke(call);
}

void
get_typlenbyval(Oid type, int16 *length, bool *by_value)
{
	*length = type == TEXTOID ? -1 : 4;
	*by_value = type != TEXTOID;
}

struct varlena *
pg_detoast_datum(struct varlena *value)
{
	return value;
}

struct varlena *
pg_detoast_datum_copy(struct varlena *value)
{
	return memcpy(palloc(VARSIZE(value)), value, VARSIZE(value));
}

/* ---- a statement ---- */

bool
backend_run(void (*statement) (void *argument), void *argument)
{
	MemoryContext context = AllocSetContextCreateInternal(NULL, "statement", 0, 0, 0);
	sigjmp_buf	here;
	bool		raised;

	error_exit = &here;
	error_text[0] = '\0';
	InterruptPending = false;
	clock_now = 0;
	CurrentMemoryContext = context;
	raised = sigsetjmp(here, 0) != 0;
	if (!raised)
		statement(argument);
	MemoryContextDelete(context);
	if (external_files != 0)
	{
		fprintf(stderr, "broken: %d descriptors are not given back\n", external_files);
		abort();
	}
	return !raised;
}
