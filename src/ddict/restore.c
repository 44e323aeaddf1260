/*
 * Saving all shards, and starting from saved ones. If the number of saved
 * shards matches, the files are mapped as they are. Otherwise, or if the
 * dictionary is to be writable, every rank reads some of the files and puts
 * their content.
 */
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "ddict/dictionary_int.h"

/* Keys and bytes read at a time. */
#define GROUP 4096
#define GROUP_BYTES ((uint64_t)16 << 20)

/* Identifies how keys are distributed within a replica. */
static uint64_t spread_of(const struct pen_ddict *d)
{
	if (d->width == 1)
		return 0;
	return d->o.spread == SPREAD_BLOCKS ? d->o.keys + 2 : 1;
}

static int file_name(char *buf, const char *path, uint32_t i, uint32_t n,
		     struct pen_err *err)
{
	int k = n == 1 ? snprintf(buf, PATH_MAX, "%s", path)
		       : snprintf(buf, PATH_MAX, "%s.%u-of-%u", path, i, n);

	return k < PATH_MAX ? 0
			    : pen__fail(err, P_TOO_LONG, path,
					"the path is too long");
}

PEN_API int pen_ddict_persist(struct pen_ddict *d, const char *path,
			      struct pen_err *err)
{
	const struct pen_snapshot about = { (uint32_t)(d->rank % d->width),
					    (uint32_t)d->width, spread_of(d) };
	char name[PATH_MAX];
	int rc = 0;

	/* the other groups hold the same keys */
	if (d->rank < d->width) {
		rc = file_name(name, path, about.shard, about.nshards, err);
		if (!rc)
			rc = pen__image_save(d->mine, name, about, err);
	}
	return d->comm ? pen__comm_agree(d->comm, rc, err) : rc;
}

static int map_own(struct pen_ddict *d, struct pen_err *err)
{
	struct pen_snapshot about;
	char name[PATH_MAX];
	int rc;

	rc = file_name(name, d->o.restore, (uint32_t)(d->rank % d->width),
		       (uint32_t)d->width, err);
	if (rc || access(name, F_OK))
		return rc;
	rc = pen__image_open(&d->mine, name, d->o.verify, &about, err);
	if (rc)
		return rc;
	if (about.spread == spread_of(d) && d->width > 1 &&
	    (about.shard != (uint32_t)(d->rank % d->width) ||
	     about.nshards != (uint32_t)d->width))
		return pen__fail(err, P_FILES_DISAGREE, name,
				 "contains shard %u of %u; the files were "
				 "renamed or mixed up",
				 about.shard, about.nshards);
	if (about.spread == spread_of(d))
		return 0;
	/* distributed differently: it must be read */
	pen__seg_close(d->mine);
	d->mine = NULL;
	return 0;
}

static int fail_several(const char *path, uint32_t a, uint32_t b,
			struct pen_err *err)
{
	return pen__fail(err, P_AMBIGUOUS_DATA, path,
			 "saved both as %u shards and as %u; remove the older "
			 "set of files",
			 a, b);
}

/* Number of saved shards: 1, or from the name of the first file. */
static int count_files(const char *path, uint32_t *n, struct pen_err *err)
{
	const char *slash = strrchr(path, '/');
	const char *base = slash ? slash + 1 : path;
	const size_t len = strlen(base);
	char dir[PATH_MAX];
	struct dirent *e;
	int rc = 0;
	DIR *of;

	*n = !access(path, F_OK);
	snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path) : 1,
		 slash ? path : ".");
	of = opendir(dir[0] ? dir : "/");
	while (of && !rc && (e = readdir(of))) {
		const char *tail = e->d_name + len;
		uint32_t k;

		if (strncmp(e->d_name, base, len) != 0 ||
		    strncmp(tail, ".0-of-", 6) != 0 ||
		    strspn(tail + 6, "0123456789") != strlen(tail + 6))
			continue;
		k = (uint32_t)strtoul(tail + 6, NULL, 10);
		if (*n && k && k != *n)
			rc = fail_several(path, *n, k, err);
		*n = k ? k : *n;
	}
	if (of)
		closedir(of);
	if (rc)
		return rc;
	return *n ? 0
		  : pen__fail(err, P_NOT_FOUND, path,
			      "no saved dictionary found");
}

/*
 * Keys and values of a saved shard on their way in. They are copied first,
 * because the file may be truncated and a put holds locks.
 */
struct batch {
	struct pen_seg *from;
	uint64_t at; /* next slot */
	uint64_t n, bytes;
	struct pen_block room;
	const char *name;
	struct pen_err *err;
	struct pen_key key[GROUP];
	struct pen_value value[GROUP];
};

/* Finds the next records, and the size of their copies. */
static int look(void *arg)
{
	struct batch *b = arg;
	const struct pen_seg_rec *r;

	for (b->n = b->bytes = 0; b->n < GROUP && b->bytes < GROUP_BYTES;
	     b->n++) {
		struct pen_key *k = &b->key[b->n];

		if (!pen__image_records(b->from, &b->at, &r, 1))
			break;
		*k = pen__rec_key(r);
		r = pen__table_find(b->from, *k, pen__key_hash(*k));
		if (!r)
			return pen__fail(
				b->err, P_DAMAGED, b->name,
				"damaged: a key is not where the index says; "
				"save the dictionary again");
		b->value[b->n] = pen__rec_value(r);
		b->bytes += b->value[b->n].len + (k->bytes ? k->number : 0);
	}
	return 0;
}

static int copy(void *arg)
{
	struct batch *b = arg;
	uint8_t *to = b->room.p;

	for (uint64_t i = 0; i < b->n; i++) {
		struct pen_value *v = &b->value[i];
		struct pen_key *k = &b->key[i];

		if (k->bytes) {
			memcpy(to, k->bytes, k->number);
			k->bytes = to;
			to += k->number;
		}
		memcpy(to, v->data, v->len);
		v->data = to;
		to += v->len;
	}
	return 0;
}

static int put_batch(struct pen_ddict *d, struct batch *b)
{
	int rc = pen__image_touch(b->from, look, b, b->err);

	if (!rc && pen__block_reserve(&b->room, b->bytes + 1))
		rc = pen__fail_nomem(b->err, b->name, b->bytes);
	if (!rc)
		rc = pen__image_touch(b->from, copy, b, b->err);
	if (!rc)
		rc = pen_ddict_put_many(d, b->key, b->value, b->n, b->err);
	return rc;
}

static int read_file(struct pen_ddict *d, const char *name, struct pen_err *err)
{
	struct batch *b = pen__calloc(1, sizeof(*b));
	int rc;

	if (!b)
		return pen__fail_nomem(err, name, sizeof(*b));
	b->name = name;
	b->err = err;
	rc = pen__image_open(&b->from, name, d->o.verify, NULL, err);
	do
		rc = rc ? rc : put_batch(d, b);
	while (!rc && b->n);
	pen__block_fini(&b->room);
	pen__seg_close(b->from);
	pen__free(b);
	return rc;
}

static int read_in(struct pen_ddict *d, struct pen_err *err)
{
	char name[PATH_MAX];
	uint32_t n;
	int rc = count_files(d->o.restore, &n, err);

	for (uint32_t i = (uint32_t)d->rank; !rc && i < n;
	     i += (uint32_t)d->size) {
		rc = file_name(name, d->o.restore, i, n, err);
		if (!rc)
			rc = read_file(d, name, err);
	}
	return d->comm ? pen__comm_agree(d->comm, rc, err) : rc;
}

int pen__ddict_restore(struct pen_ddict *d, struct pen_err *err)
{
	return d->mine ? read_in(d, err) : map_own(d, err);
}
