/*
 * kept_dataset.c
 *		Which kept dataset has a table's references as they are now.
 *
 * The engine keeps datasets for later statements, under labels.  A statement may take one only if
 * its own snapshot sees the same rows in the table as the snapshot with which that dataset was
 * read.  PostgreSQL has no version of a table, but it has the visibility map: two bits for each page
 * of the table, the first of which says that all transactions see all tuples of the page.  A change
 * of the page clears the bit, and VACUUM, or COPY FREEZE, sets it again.  Setting a bit is recorded
 * in the WAL, and the page of the map gets the LSN of the record.  So before references are read, or
 * not, the pages of the map, one for some 32,000 pages of the table, are made the version of a
 * label:
 *
 *	 - each page of the table has its bit; or it is new, which is to say that nothing has ever been
 *	   put there; or it is settled: each transaction that has inserted a tuple there or deleted one had
 *	   ended before the snapshot was taken (page_points.h).  Else the table has no label, and is read as always.
 *	   A table with settled pages has none for caches, whose own lists tell which pages have changed;
 *	 - each page of the map with such a bit has an LSN, and so has each settled page without one; no
 *	   LSN is past the end of the WAL as it was before the first page was looked at;
 *	 - the version is the number of the table's pages, of new ones and of settled ones without a bit, the
 *	   greatest of all these LSNs, and a hash of the LSNs of the map and of the numbers and LSNs of the pages
 *	   without a bit, in their order.
 *
 * Bits and LSN of a page of the map are read together, under its lock: whatever sets a bit sets the
 * LSN under the same lock, so a copy with an old LSN has only old bits.  A page of the table that has
 * no bit is looked at after that, under its own lock.  The snapshot is older than all of this, and the table is locked,
 * so that it is not cut short meanwhile.
 *
 * A statement looks at the table first, for the version by which it may find a dataset.  If it finds none, it reads
 * the references, and then looks once more, for the version under which they are kept.  Between the two, pages may
 * have been pruned, above all by the statement's own reading, or VACUUM may have set bits.  The references are the rows
 * that the snapshot sees, whenever they are read.  So what follows speaks of the second look, and of the looks
 * of later statements.
 *
 * Why the same version means the same rows:
 *
 * (1) The rows that a snapshot sees on pages with a bit are the tuples that these had when the bits were set.  A
 *	   bit is set under the lock of the table's page, when all tuples of the page are visible to all
 *	   snapshots that are in use then, and to all later ones.  A change of the page clears the bit in
 *	   the critical section that puts it there, so before its transaction commits.  Suppose that the
 *	   snapshot sees a change: the transaction had ended before the snapshot was taken, under a lock
 *	   that it took when it ended (ProcArrayLock).  So the bit that is read later is clear, or was
 *	   set again after the change.  Where the bit is set, a change may be half done, or its bit be
 *	   cleared a moment later: the snapshot does not see it.  Index-only scans rely on the same
 *	   (nodeIndexonlyscan.c).  A new page has no tuples.  It may be filled a moment later, and pages
 *	   may be added meanwhile, by transactions that the snapshot does not see.
 *
 * (2) Two looks that find the same version have found each bit set all the time between
 *	   them.  A bit that was set after the first look at its page of the map gave this page an LSN
 *	   past the end of the WAL as of before that look, so greater than all LSNs of the first
 *	   version, and thus the second one's greatest LSN would be another.  So no bit was set.  The
 *	   second look thus found only bits that the first one had found, and, as it found as many pages
 *	   and as many without a bit, it found all of them; the same pages have none.  What is not recorded does
 *	   no harm: clearing a bit gives the page of the map no LSN, but only setting it again would hide that.
 *	   When the table is cut short, or its map by pg_truncate_visibility_map, the
 *	   bits of what is cut off are cleared.
 *
 *	   The pages without a bit have the same tuples.  All insertions, updates, deletions and pruning are
 *	   recorded, and each sets the page's LSN to the end of its record, under the exclusive lock of the page.  So a
 *	   page that was changed or filled after the first look at it has an LSN past the end of the WAL as of before
 *	   that look, and the second version's greatest LSN would be another.  (Hint bits may set the LSN again, up or
 *	   down, to those of records that came after the change.)  If the table is cut short, and grows to its former
 *	   size again, the pages that were cut off are filled, as above, or they are new.  As no page was filled, all
 *	   that were new are new, and a page that was not would be one more.
 *
 * (3) Both snapshots see the same of these tuples.  What a snapshot sees of a page depends on its bytes and on which
 *	   of the transactions that have inserted or deleted tuples there have ended, and how.  On a settled page all of
 *	   them had ended for the first snapshot and for the second one, whichever is the older one, and each in one way.  A
 *	   transaction that is still in progress, a prepared one, the own one, and one that began or ended after an
 *	   older snapshot was taken make a page unsettled.  So do subtransactions, except those that were rolled back,
 *	   which are invisible before and after their transaction has ended.  Locks of rows do not count as deletions.
 *	   Freezing puts for a transaction that it had ended, and is recorded.
 *
 *	   The tuples of most pages need not be looked at to tell that a page is settled.  Suppose that a process reads the
 *	   end of the WAL, and then the number of the next transaction.  Each transaction that has written a record before
 *	   that end has a smaller number.  For a snapshot whose xmin is not less than the number, all of these had ended.
 *	   So a page whose LSN is not past that end is settled: each insertion and deletion there has a record that is not
 *	   past the page's LSN.  (Where it has none, by (4), the transaction had made the file; the page's LSN is of a later
 *	   record, and if the transaction's number is not less than the one that was read, that record is past the end.)
 *	   Where no transaction is in progress and none has begun since the snapshot was taken, this holds for
 *	   the present end.  Else a look takes the end that an earlier look of the same process read.
 *
 *	   So between two looks nothing has changed that a snapshot of the second one sees; and by (1)
 *	   the snapshots of both see the tuples that the pages had when their bits were set, and by (3) the same tuples of
 *	   the other pages.  One's own uncommitted changes and those that are rolled back clear bits as any others do.
 *	   FOR UPDATE and other locks of rows clear the second bit alone, that of frozen pages, and change no rows.
 *	   When VACUUM sets a bit, or a page without one is pruned, the version is another, so that the table is
 *	   read once more than it must be.
 *
 *	   Hint bits, checksums and pruning change neither rows nor the map.
 *
 * (4) A few changes clear no bit, or are not recorded.  COPY FREEZE adds tuples to a page
 *	   that it has marked itself, and leaves the mark; and where wal_level is minimal, what a
 *	   transaction puts into a file that it has made itself is in no record.  Both happen only to
 *	   files that the transaction in progress has made (rd_createSubid,
 *	   rd_firstRelfilelocatorSubid).  Such a file is not looked at within its transaction, and no
 *	   other sees it.  After the commit both are as above.  The map of a file that was not recorded
 *	   has no LSN, or one from the commit's own record, and its pages have none.  Such a table has
 *	   no label, until VACUUM has set a bit on each page of its map.
 *
 *	   System catalogs have no label: ANALYZE and others update some of their rows in place, which clears
 *	   no bit (heap_inplace_update in heapam.c).  Nothing does so to other tables.
 *
 *	   A permanent table's heap records all else.  TRUNCATE, VACUUM FULL and every rewrite of a table
 *	   make another file, which is in the subject of a label.
 *
 * (5) The same pages are the same rows for the same subject of the label.  Besides the file it has
 *	   the columns with their types and collations and the functions that order and compare them,
 *	   which is all that the meaning of a tuple depends on; and which row of pg_class describes the
 *	   table.  That row has the number of columns: what a column that was added later has in older
 *	   tuples is in the catalog alone, so a column of the same number that was rolled back must not
 *	   be taken for it.  Values out of line belong to their tuple, and are never changed.  And it has
 *	   what the dataset was made for: its metric, groups, excluded tags and limits, and whether ids and
 *	   coordinates are with it.  A join that asks for distances alone can use a dataset with any of
 *	   the latter.  For a column of geometry it has what its SRID means (points/transform.c).
 *
 *	   OIDs and numbers of files can be used again, by another table, after 2^32 others, or by
 *	   CREATE DATABASE ... OID, which may copy files with their LSNs.  Then the row of pg_database, or the hash of
 *	   all LSNs, tells them apart: a place of the WAL is never used twice while the server runs.  So two pages
 *	   with the same LSN had the same bytes when it was given, and (2) holds for both from then on.
 *	   The engine, with its datasets, ends with the server, also in a restart after a crash.
 *	   The labels of caches (cache/last_run.c) outlive a shutdown, after which the WAL goes on, and
 *	   are gone after a crash.
 *
 * Unlogged, temporary and foreign tables and those of other access methods have no label, nor has a source
 * that is more than one table read from end to end, as views with conditions and partitioned tables are.
 * No table has one on a standby, where bits are set ahead of snapshots, or with old_snapshot_threshold,
 * which lets them be set regardless of old snapshots.
 *
 * References without a label are read and sent by each search anew.
 *
 * A label is the same for all users, since a session that asks for it has been checked for
 * the privilege to read the table's rows, all of them and all of these columns.  From a dataset
 * that it finds, the session learns that another one has searched this version of the table.
 *
 * Under SERIALIZABLE the table is first locked as its scan would lock it.  Tuples need no
 * check for conflicts: every transaction that has written to an all-visible page is
 * visible to all others, and each that has written to a settled one had ended for the snapshot.
 *
 * A writer takes the lock of a page, looks for such locks of others, clears the bit, and changes the page.  A scan takes
 * the page's lock, too.  So it comes first, and the writer finds its lock of the table; or it comes later, and finds the
 * change.  A look at the map alone can come between the writer's look and the clearing of the bit, and then neither finds
 * the other (an index-only scan can, too).  But before all this, the writer takes RowExclusiveLock on the table, until its
 * transaction ends.  So where no other transaction has that lock once the table is locked for SERIALIZABLE, each later
 * writer finds the lock, and each former one has ended; if the snapshot does not see its change, the bit is clear, and
 * stays so as long as the snapshot is in use.  Else the map is not believed.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/visibilitymap.h"
#include "access/xlog.h"
#include "catalog/catalog.h"
#include "catalog/pg_class.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/predicate.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#include "base/compat.h"
#include "pages/kept_dataset.h"
#include "pages/page_points.h"

/* The parts of a table's state by which two states are told apart. */
typedef struct Version
{
	BlockNumber blocks;
	BlockNumber new_blocks;
	BlockNumber settled;		/* how many settled blocks have no bit in the visibility map */
	uint32		unused;
	uint64		last;			/* the greatest LSN of the visibility map's pages, and of settled blocks that have no bit */
	uint64		hash;			/* a hash of the LSNs of the map's pages and of the blocks that have no bit */
} Version;

StaticAssertDecl(sizeof(Version) <= GEONN_VERSION_BYTES, "a label has no room for a version");

/* a map byte that marks all of its blocks all-visible */
#define ALL_VISIBLE		(VISIBILITYMAP_ALL_VISIBLE * 0x55)

/* ---- the version ---- */

void
geonn_read_map(Relation table, BlockNumber first, MapPage *copy)
{
	Buffer		map = InvalidBuffer;

	memset(copy, 0, sizeof(*copy));
	(void) visibilitymap_get_status(table, first, &map);
	if (!BufferIsValid(map))
		return;
	LockBuffer(map, BUFFER_LOCK_SHARE);
	copy->lsn = BufferGetLSNAtomic(map);
	memcpy(copy->bits, PageGetContents(BufferGetPage(map)), sizeof(copy->bits));
	UnlockReleaseBuffer(map);
}

bool
geonn_lock_for_map(Relation table, Snapshot snapshot)
{
	LOCKTAG		tag;
	int			writers;

	Assert(CheckRelationLockedByMe(table, AccessShareLock, true));
	PredicateLockRelation(table, snapshot);
	if (!IsolationIsSerializable())
		return true;
	SET_LOCKTAG_RELATION(tag, table->rd_lockInfo.lockRelId.dbId, table->rd_lockInfo.lockRelId.relId);
	/* The count includes VACUUM's lock, because no mode conflicts with RowExclusiveLock but not with that of VACUUM. */
	pfree(GetLockConflicts(&tag, ShareLock, &writers));
	return writers == 0;
}

/* Return whether the visibility map shows this table's changes, for this snapshot. */
static bool
shows_changes(Relation table, Snapshot snapshot)
{
	if (OldSnapshotThresholdActive())
		return false;
	return (table->rd_rel->relkind == RELKIND_RELATION ||
			table->rd_rel->relkind == RELKIND_MATVIEW) &&
		table->rd_tableam == GetHeapamTableAmRoutine() && !IsCatalogRelation(table) &&
		table->rd_createSubid == InvalidSubTransactionId &&
		table->rd_firstRelfilelocatorSubid == InvalidSubTransactionId &&
		RelationNeedsWAL(table) && RelationIsScannable(table) &&
		IsMVCCSnapshot(snapshot) && !snapshot->takenDuringRecovery && !RecoveryInProgress();
}

/*
 * A position of the WAL, and a number: all transactions that have written to the WAL before the position
 * have smaller numbers.
 */
typedef struct Horizon
{
	XLogRecPtr	position;
	uint64		next;			/* FullTransactionId */
} Horizon;

/*
 * Return a position of the WAL before which no transaction has written that is in progress for the
 * snapshot; InvalidXLogRecPtr: no such position is known.  It is at most `end`, the end of the WAL.
 */
static XLogRecPtr
ended_before(Snapshot snapshot, XLogRecPtr end)
{
	static Horizon former;		/* what an earlier look has read */
	FullTransactionId next = ReadNextFullTransactionId();
	Horizon		present = {.position = end,.next = U64FromFullTransactionId(next)};
	uint64		xmin = present.next - (uint32) (XidFromFullTransactionId(next) - snapshot->xmin);
	Horizon		ended = xmin >= present.next ? present : former;

	if (xmin < ended.next)
		return InvalidXLogRecPtr;
	former = present;
	return ended.position;
}

/* a look at a table */
typedef struct Look
{
	Relation	table;
	Snapshot	snapshot;		/* NULL: only all-visible pages count, not settled ones */
	BufferAccessStrategy strategy;
	XLogRecPtr	end;			/* the end of the WAL before the look began */
	XLogRecPtr	ended;			/* ended_before() */
	Version		version;
} Look;

/* Return whether a page with this LSN is settled.  The caller holds a lock of the page. */
static bool
is_settled(const Look *look, Page page, XLogRecPtr lsn)
{
	if (look->snapshot == NULL || XLogRecPtrIsInvalid(lsn) || lsn > look->end)
		return false;
	return lsn <= look->ended ||
		geonn_page_unsettled_by(page, look->snapshot, false) == InvalidTransactionId;
}

/* Add to the version a block that is not all-visible.  Returns false if the table has no version now. */
static bool
add_unmarked(Look *look, BlockNumber block)
{
	Version    *version = &look->version;
	uint64		noted[2] = {block};
	Buffer		buffer;
	Page		page;
	bool		is_new;
	bool		settled;

	CHECK_FOR_INTERRUPTS();
	buffer = ReadBufferExtended(look->table, MAIN_FORKNUM, block, RBM_NORMAL, look->strategy);
	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	page = BufferGetPage(buffer);
	noted[1] = BufferGetLSNAtomic(buffer);
	is_new = PageIsNew(page);
	settled = !is_new && is_settled(look, page, noted[1]);
	UnlockReleaseBuffer(buffer);

	version->new_blocks += is_new;
	version->settled += settled;
	version->last = Max(version->last, noted[1]);
	version->hash = hash_bytes_extended((unsigned char *) noted, sizeof(noted), version->hash);
	return is_new || settled;
}

/*
 * A page of the visibility map describes `count` blocks from `first` on.  Add all of them that have no bit in it to the
 * version.  Returns false if the table has no version now.
 */
static bool
add_all_unmarked(Look *look, BlockNumber first, BlockNumber count, const MapPage *map)
{
	for (BlockNumber i = 0; i < count; i++)
	{
		if (i % BLOCKS_A_BYTE == 0 && (map->bits[i / BLOCKS_A_BYTE] & ALL_VISIBLE) == ALL_VISIBLE)
		{
			i += BLOCKS_A_BYTE - 1;
			continue;
		}
		if (!geonn_map_is_visible(map, i) && !add_unmarked(look, first + i))
			return false;
	}
	return true;
}

/*
 * Read the version that the table has for this snapshot, or (NULL) for any snapshot.  Returns false if
 * the table has none now.
 */
static bool
read_version(Relation table, Snapshot snapshot, Version *version)
{
	XLogRecPtr	end = GetXLogInsertRecPtr();
	BlockNumber blocks = RelationGetNumberOfBlocks(table);
	Look		look = {
		.table = table,
		.snapshot = snapshot,
		.strategy = geonn_page_strategy(blocks),
		.end = end,
		.ended = snapshot != NULL ? ended_before(snapshot, end) : InvalidXLogRecPtr,
		.version = {.blocks = blocks}
	};
	MapPage		map;
	bool		complete = true;

	for (BlockNumber first = 0; complete && first < blocks; first += Min(BLOCKS_A_MAP, blocks - first))
	{
		BlockNumber count = Min(BLOCKS_A_MAP, blocks - first);
		BlockNumber unmarked = look.version.new_blocks + look.version.settled;

		CHECK_FOR_INTERRUPTS();
		geonn_read_map(table, first, &map);
		complete = map.lsn <= end && add_all_unmarked(&look, first, count, &map);
		unmarked = look.version.new_blocks + look.version.settled - unmarked;
		if (XLogRecPtrIsInvalid(map.lsn) && unmarked < count)
			complete = false;
		look.version.last = Max(look.version.last, map.lsn);
		look.version.hash = hash_bytes_extended((unsigned char *) &map.lsn, sizeof(map.lsn),
												look.version.hash);
	}
	if (look.strategy != NULL)
		FreeAccessStrategy(look.strategy);
	*version = look.version;
	return complete;
}

/* ---- the subject ---- */

typedef struct Subject
{
	uint8	   *bytes;			/* [GEONN_SUBJECT_BYTES] */
	Size		length;			/* length of the whole subject, even beyond the room for it */
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

/* Return the transaction that wrote the catalog's row of this object. */
static uint32
description_of(int cache, Oid object)
{
	HeapTuple	row = SearchSysCache1(cache, ObjectIdGetDatum(object));
	uint32		transaction;

	if (!HeapTupleIsValid(row))
		elog(ERROR, "cache lookup failed for object %u", object);
	transaction = HeapTupleHeaderGetRawXmin(row->t_data);
	ReleaseSysCache(row);
	return transaction;
}

/* Write the subject of a label.  Returns false if it does not fit. */
static bool
describe(const PointSource *source, Relation table, const AttrNumber *attributes,
		 const GeonnQuestion *question, ReferenceDetail detail, uint8 *bytes)
{
	Subject		subject = {.bytes = bytes};
	TypeCacheEntry *type = lookup_type_cache(source->columns[COLUMN_ID].base_type,
											 TYPECACHE_CMP_PROC);
	uint64		meaning = geonn_transform_meaning(source->transform);

	add_number(&subject, MyDatabaseId);
	add_number(&subject, description_of(DATABASEOID, MyDatabaseId));
	add_number(&subject, RelationGetRelid(table));
	add_number(&subject, description_of(RELOID, RelationGetRelid(table)));
	add_bytes(&subject, &table->rd_locator, sizeof(table->rd_locator));
	add_number(&subject, (uint32) question->metric);
	add_number(&subject, question->columns);
	add_number(&subject, (uint32) detail);
	for (int role = 0; role < COLUMN_ROLES; role++)
		add_column(&subject, &source->columns[role], attributes);
	add_number(&subject, type->cmp_proc);
	if (source->point_kind == GEONN_POINT_GEOMETRY)
		add_bytes(&subject, &meaning, sizeof(meaning));
	for (int i = 0; i < source->by_count; i++)
	{
		add_column(&subject, &source->by[i], attributes);
		type = lookup_type_cache(source->by[i].base_type,
								 TYPECACHE_EQ_OPR | TYPECACHE_HASH_PROC);
		add_number(&subject, type->eq_opr);
		add_number(&subject, type->hash_proc);
	}
	for (int i = 0; i < source->window_count; i++)
		add_column(&subject, &source->windows[i], attributes);
	for (int i = 0; i < source->weight_count; i++)
		add_column(&subject, &source->weights[i], attributes);
	return subject.length <= GEONN_SUBJECT_BYTES;
}

int
geonn_label_dataset(const PointSource *source, const PlainTable *table, const GeonnQuestion *question,
					ReferenceDetail detail, bool settled, struct geonn_label *labels)
{
	ReferenceDetail last = detail == REFERENCE_DISTANCE ? REFERENCE_COORDINATES : detail;
	Snapshot	snapshot = GetActiveSnapshot();
	Relation	relation = table_open(table->table, NoLock);
	bool		has_label = shows_changes(relation, snapshot);
	Version		version;
	int			count = 0;

	for (; has_label && detail <= last; detail++)
	{
		memset(&labels[count], 0, sizeof(*labels));
		has_label = describe(source, relation, table->attributes, question, detail, labels[count++].subject);
	}
	if (has_label)
		has_label = geonn_lock_for_map(relation, snapshot) &&
			read_version(relation, settled ? snapshot : NULL, &version);
	table_close(relation, NoLock);
	for (int i = 0; has_label && i < count; i++)
		memcpy(labels[i].version, &version, sizeof(version));
	return has_label ? count : 0;
}

bool
geonn_describe_pages(const PointSource *source, Relation table, const AttrNumber *attributes,
					 const GeonnQuestion *question, uint8 *subject)
{
	memset(subject, 0, GEONN_SUBJECT_BYTES);
	return shows_changes(table, GetActiveSnapshot()) &&
		describe(source, table, attributes, question, REFERENCE_COORDINATES, subject);
}
