/*
 * kept_dataset.c
 *		Which kept dataset has a table's references as they are now.
 *
 * The engine keeps datasets for later statements, under labels.  A statement may
 * take one only if its own snapshot sees the same rows in the table as the
 * snapshot with which that dataset was read.  PostgreSQL has no version of a
 * table, but each of its pages has one: the LSN, the place in the WAL where the
 * last change of the page is recorded.  So before references are read, or not,
 * one pass over the table looks at every page, under its lock, and makes of them
 * the version of a label:
 *
 *	 - every page is marked all-visible, and its LSN is not past the end of the
 *	   WAL as it was before the pass, or it is new, which is to say that nothing
 *	   has ever been put there; else there is no label, and the table is read as
 *	   always;
 *	 - the version is the number of pages and of new ones, the greatest LSN, and a
 *	   hash of all LSNs in the order of pages.
 *
 * Why the same version means the same rows:
 *
 * (1) The rows that a statement's snapshot sees are the tuples of the pages as
 *	   the pass finds them.  A sequential scan with this snapshot, at these very
 *	   moments, would return just these: on an all-visible page it takes all
 *	   tuples without looking at them, and on a new one there is none (heapgetpage
 *	   in heapam.c, later heap_prepare_pagescan; it also does not trust the mark
 *	   under a snapshot of a time of recovery, nor does the pass).  Two scans with
 *	   one snapshot see the same rows, so what is read afterwards, by the statement
 *	   that makes a new dataset, are these tuples as well, whatever others do
 *	   meanwhile.  Pages that are added during the pass have rows of transactions
 *	   that the snapshot does not see.
 *
 * (2) No page has changed between two passes with the same version.  A change
 *	   after the first one looked at the page has an LSN past the end of the WAL
 *	   as of before that pass, so greater than all LSNs of the first version, and
 *	   thus the second one's greatest LSN would be another.  So it would be if the
 *	   table was cut short and then filled again; if the pages that came back are
 *	   new, there are more of these.
 *
 *	   This needs that every change of tuples is recorded in the WAL and sets the
 *	   LSN: so it is for a permanent table's heap, save where a transaction fills a
 *	   file that it has made itself and wal_level is minimal.  Such a table is not
 *	   looked at within that transaction (RelationNeedsWAL), and later its pages
 *	   have no LSN, or one from the commit's own record.  Pages without an LSN have
 *	   no label.  What is not recorded is hint bits and the mark itself; neither
 *	   changes which tuples there are.
 *
 *	   So an older snapshot, one's own uncommitted changes and those rolled back
 *	   all end in a page that is not all-visible, or whose LSN is another.
 *
 * (3) The same pages are the same rows for the same subject of the label.  It has
 *	   the table's file, as TRUNCATE, VACUUM FULL and every rewrite of a table
 *	   make another; the columns with their types and collations and the functions
 *	   that order and compare them, which is all that the meaning of a tuple
 *	   depends on; and which row of pg_class describes the table.  That row has
 *	   the number of columns: what a column that was added later has in older
 *	   tuples is in the catalog alone, so a column of the same number that was
 *	   rolled back must not be taken for it.  Values out of line belong to their
 *	   tuple, and are never changed.  And it has what the dataset was made for:
 *	   its metric, groups and identities, and whether ids and coordinates are with it.
 *	   A join that asks for distances alone can use a dataset with any of the latter.
 *
 * (4) OIDs and numbers of files can be used again, by another table, after 2^32
 *	   others, or by CREATE DATABASE ... OID, which may copy files with their
 *	   LSNs.  Then the hash of all LSNs tells them apart: a place of the WAL is
 *	   never used twice while the server runs, and the engine, with its datasets,
 *	   ends with the server, also in a restart after a crash.
 *
 * Beside unlogged, temporary and foreign tables and those of other access methods,
 * these have no label: what is not one table read from end to end, as views with
 * conditions and partitioned tables are; and any table on a standby, where marks
 * are set ahead of snapshots, or with old_snapshot_threshold, which lets them be
 * set regardless of old snapshots.
 *
 * References without a label are read.  The engine keeps these, too, unless they are few, and
 * finds them again by their contents, for the same user of the same database, so that their
 * index need not be built anew (engine/dataset/dataset_contents.c).
 *
 * A label is the same for all users, since a session that asks for it has been checked for
 * the privilege to read the table's rows, all of them and all of these columns.  From a dataset
 * that it finds, the session learns that another one has searched this version of the table.
 *
 * Under SERIALIZABLE the table is locked as its scan would lock it.  Its tuples need no
 * check for conflicts: every transaction that has written to an all-visible page is
 * visible to all others.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/visibilitymap.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/predicate.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "compat.h"
#include "join/kept_dataset.h"

/* what distinguishes two states of a table */
typedef struct Version
{
	uint64		blocks;
	uint64		new_blocks;
	uint64		last;			/* the greatest LSN */
	uint64		hash;			/* of all LSNs */
} Version;

StaticAssertDecl(sizeof(Version) <= GEONN_VERSION_BYTES, "a label has no room for a version");

/* a table larger than this share of shared buffers does not fill them (as heapam.c) */
#define BUFFERS_SHARE	4

/* ---- the version ---- */

/*
 * Do the pages of this table show its changes, for this snapshot?
 */
static bool
shows_changes(Relation table, Snapshot snapshot)
{
	if (OldSnapshotThresholdActive())
		return false;
	return (table->rd_rel->relkind == RELKIND_RELATION ||
			table->rd_rel->relkind == RELKIND_MATVIEW) &&
		table->rd_tableam == GetHeapamTableAmRoutine() &&
		RelationNeedsWAL(table) && RelationIsScannable(table) &&
		IsMVCCSnapshot(snapshot) && !snapshot->takenDuringRecovery && !RecoveryInProgress();
}

/*
 * Does the visibility map, which is small, already show that all pages are
 * all-visible or new?
 */
static bool
is_marked(Relation table, BlockNumber blocks)
{
	Buffer		map = InvalidBuffer;
	BlockNumber marked;
	bool		others_are_new = true;

	visibilitymap_count(table, &marked, NULL);
	for (BlockNumber block = 0; marked < blocks && others_are_new && block < blocks; block++)
	{
		Buffer		buffer;

		CHECK_FOR_INTERRUPTS();
		if (VM_ALL_VISIBLE(table, block, &map))
			continue;
		buffer = ReadBuffer(table, block);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		others_are_new = PageIsNew(BufferGetPage(buffer));
		UnlockReleaseBuffer(buffer);
	}
	if (BufferIsValid(map))
		ReleaseBuffer(map);
	return others_are_new;
}

/*
 * Read all pages; false if one of them rules out a version.
 */
static bool
read_version(Relation table, Version *version)
{
	XLogRecPtr	end = GetXLogInsertRecPtr();
	BlockNumber blocks = RelationGetNumberOfBlocks(table);
	BufferAccessStrategy strategy = NULL;
	Buffer		buffer = InvalidBuffer;

	if (!is_marked(table, blocks))
		return false;
	if (blocks > (BlockNumber) (NBuffers / BUFFERS_SHARE))
		strategy = GetAccessStrategy(BAS_BULKREAD);
	*version = (Version) {0};
	for (; version->blocks < blocks; version->blocks++)
	{
		BlockNumber block = (BlockNumber) version->blocks;
		XLogRecPtr	lsn;
		bool		is_new;
		bool		all_visible;

		CHECK_FOR_INTERRUPTS();

		/* try the buffer after the last page's first: most pages are there, and a lookup takes longer */
		if (buffer == NBuffers ||
			!ReadRecentBuffer(table->rd_locator, MAIN_FORKNUM, block, ++buffer))
			buffer = ReadBufferExtended(table, MAIN_FORKNUM, block, RBM_NORMAL, strategy);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		is_new = PageIsNew(BufferGetPage(buffer));
		all_visible = PageIsAllVisible(BufferGetPage(buffer));
		lsn = BufferGetLSNAtomic(buffer);
		UnlockReleaseBuffer(buffer);
		if (is_new)
			version->new_blocks++;
		else if (!all_visible || XLogRecPtrIsInvalid(lsn) || lsn > end)
			break;
		version->last = Max(version->last, lsn);
		version->hash = hash_bytes_extended((unsigned char *) &lsn, sizeof(lsn), version->hash);
	}
	if (strategy != NULL)
		FreeAccessStrategy(strategy);
	return version->blocks == blocks;
}

/* ---- the subject ---- */

typedef struct Subject
{
	uint8	   *bytes;			/* [GEONN_SUBJECT_BYTES] */
	Size		length;			/* of the whole subject, also if it does not fit */
} Subject;

static void
add_bytes(Subject *subject, const void *bytes, Size length)
{
	if (subject->length + length <= GEONN_SUBJECT_BYTES)
		memcpy(subject->bytes + subject->length, bytes, length);
	subject->length += length;
}

static void
add_number(Subject *subject, uint32 number)
{
	add_bytes(subject, &number, sizeof(number));
}

static void
add_column(Subject *subject, const PointColumn *column, const AttrNumber *attributes)
{
	if (column->name == NULL)
	{
		add_number(subject, 0);
		return;
	}
	add_number(subject, (uint32) attributes[column->attribute - 1]);
	add_number(subject, column->type);
	add_number(subject, column->base_type);
	add_number(subject, column->collation);
}

/*
 * The transaction that wrote the row of pg_class which describes the table.
 */
static uint32
description_of(Oid table)
{
	HeapTuple	row = SearchSysCache1(RELOID, ObjectIdGetDatum(table));
	uint32		transaction;

	if (!HeapTupleIsValid(row))
		elog(ERROR, "cache lookup failed for relation %u", table);
	transaction = HeapTupleHeaderGetRawXmin(row->t_data);
	ReleaseSysCache(row);
	return transaction;
}

/*
 * Write the subject of a label; false if it does not fit.
 */
static bool
describe(const PointSource *source, Relation table, const AttrNumber *attributes,
		 const GeonnQuestion *question, ReferenceDetail detail, uint8 *bytes)
{
	Subject		subject = {.bytes = bytes};
	TypeCacheEntry *type = lookup_type_cache(source->columns[COLUMN_ID].base_type,
											 TYPECACHE_CMP_PROC);

	add_number(&subject, MyDatabaseId);
	add_number(&subject, RelationGetRelid(table));
	add_number(&subject, description_of(RelationGetRelid(table)));
	add_bytes(&subject, &table->rd_locator, sizeof(table->rd_locator));
	add_number(&subject, (uint32) question->metric);
	add_number(&subject, question->columns);
	add_number(&subject, (uint32) detail);
	for (int role = 0; role < COLUMN_ROLES; role++)
		add_column(&subject, &source->columns[role], attributes);
	add_number(&subject, type->cmp_proc);
	for (int i = 0; i < source->by_count; i++)
	{
		add_column(&subject, &source->by[i], attributes);
		type = lookup_type_cache(source->by[i].base_type,
								 TYPECACHE_EQ_OPR | TYPECACHE_HASH_PROC);
		add_number(&subject, type->eq_opr);
		add_number(&subject, type->hash_proc);
	}
	return subject.length <= GEONN_SUBJECT_BYTES;
}

/*
 * Write the subjects of all datasets that would do; returns their number, 0 if one does not
 * fit.
 */
static int
describe_all(const PointSource *source, Relation table, const AttrNumber *attributes,
			 const GeonnQuestion *question, ReferenceDetail detail, struct geonn_label *labels)
{
	ReferenceDetail last = detail == REFERENCE_DISTANCE ? REFERENCE_COORDINATES : detail;
	int			count = 0;

	for (; detail <= last; detail++)
	{
		memset(&labels[count], 0, sizeof(*labels));
		if (!describe(source, table, attributes, question, detail, labels[count++].subject))
			return 0;
	}
	return count;
}

int
geonn_label_dataset(const PointSource *source, Oid table, const AttrNumber *attributes,
					const GeonnQuestion *question, ReferenceDetail detail,
					struct geonn_label *labels)
{
	Snapshot	snapshot = GetActiveSnapshot();
	Relation	relation;
	Version		version;
	int			count = 0;

	relation = table_open(table, NoLock);
	if (shows_changes(relation, snapshot))
		count = describe_all(source, relation, attributes, question, detail, labels);
	if (count > 0)
	{
		PredicateLockRelation(relation, snapshot);
		if (!read_version(relation, &version))
			count = 0;
	}
	table_close(relation, NoLock);
	for (int i = 0; i < count; i++)
		memcpy(labels[i].version, &version, sizeof(version));
	return count;
}
