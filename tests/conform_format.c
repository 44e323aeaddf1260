/*
 * Requirements for every format in the engine: it returns what its writer was
 * given, from the file system and from memory; and if bytes are damaged, reads
 * fail or memory runs out, it ends in an error or in data of the declared
 * shape. Round trips and damage loop over the registry, faults over small data
 * sets of every format.
 */
#include <errno.h>
#include <fcntl.h>

#include "engine.h"

struct shape {
	enum pen_dtype dtype;
	uint32_t ndim;
	int64_t shape[3];
	uint64_t nsamples;
};

static const struct shape shapes[] = {
	{ PEN_F32, 2, { 3, 4 }, 5 },	{ PEN_BOOL, 1, { 9 }, 3 },
	{ PEN_I8, 0, { 0 }, 17 },	{ PEN_U16, 1, { 1 }, 2 },
	{ PEN_F16, 3, { 2, 1, 3 }, 4 }, { PEN_C128, 1, { 2 }, 3 },
	{ PEN_F80, 1, { 3 }, 2 },	{ PEN_U64, 2, { 1, 5 }, 1 },
	{ PEN_I32, 1, { 1000 }, 6 },	{ PEN_C160, 0, { 0 }, 4 },
	{ PEN_U8, 1, { 9 }, 4 },	{ PEN_I64, 1, { 3 }, 2 },
	{ PEN_U8, 2, { 5, 7 }, 1 },	{ PEN_U8, 3, { 4, 6, 3 }, 1 },
	{ PEN_U16, 2, { 3, 4 }, 1 },
};
#define NSHAPES (sizeof(shapes) / sizeof(*shapes))

/* What a format returns of its input; nothing: it rejects writing. */
enum { TAKEN = 1, AXES = 2, BYTES = 4, ALL = TAKEN | AXES | BYTES };

static bool is_image(const struct shape *s, int64_t most)
{
	return s->nsamples == 1 &&
	       (s->ndim == 2 || (s->ndim == 3 && s->shape[2] <= most));
}

static unsigned keeps_image(const char *name, const struct shape *s)
{
	if (strcmp(name, "jpeg") == 0) /* lossy */
		return s->dtype == PEN_U8 && is_image(s, 3) ? TAKEN | AXES : 0;
	return (s->dtype == PEN_U8 || s->dtype == PEN_U16) && is_image(s, 4)
		       ? ALL
		       : 0;
}

static unsigned keeps(const struct pen_format_ops *ops, const struct shape *s)
{
	const char *name = ops->name;
	const unsigned flat = s->ndim == 1 ? ALL : TAKEN | BYTES;

	if (strcmp(name, "jpeg") == 0 || strcmp(name, "png") == 0)
		return keeps_image(name, s);
	if (strcmp(name, "tfrecord") == 0)
		return s->dtype == PEN_U8 || s->dtype == PEN_F32 ||
				       s->dtype == PEN_I64
			       ? flat
			       : 0;
	if (strcmp(name, "csv") == 0) {
		if (s->dtype == PEN_BOOL || s->dtype == PEN_F16 ||
		    s->dtype > PEN_F64)
			return 0;
		/* all NaNs are equal */
		return s->dtype >= PEN_F16 ? flat & ~(unsigned)BYTES : flat;
	}
	if (pen__opt_find(ops->opts, "tokens"))
		return s->dtype == PEN_U8 && s->ndim == 1 ? ALL : 0;
	if (strcmp(name, "hdf5") == 0)
		return s->dtype < PEN_C64 ? ALL : 0;
	if (strcmp(name, "synthetic") == 0)
		return TAKEN | AXES;
	return ALL;
}

/* Rows consist of letters. */
static bool has_letters(const char *format)
{
	return pen__opt_find(pen__format_find(format)->opts, "tokens") != NULL;
}

/* Samples are entries along an axis of a file. */
static bool has_axis(const struct pen_format_ops *ops)
{
	const struct pen_opt *o = pen__opt_find(ops->opts, "samples");

	return o && o->type == PEN_OPT_ENUM;
}

/* Settings required by formats that do not describe themselves. */
static void reading(const struct pen_format_ops *ops, const struct shape *s,
		    char *buf, size_t cap)
{
	const bool shape = pen__opt_find(ops->opts, "shape") != NULL;
	size_t at = 0;

	buf[0] = '\0';
	if (pen__opt_find(ops->opts, "dtype"))
		at += (size_t)snprintf(buf, cap, "format.dtype=%s ",
				       pen_dtype_name(s->dtype));
	if (shape)
		at += (size_t)snprintf(buf + at, cap - at, "format.shape=%s",
				       s->ndim ? "" : "1");
	for (uint32_t i = 0; shape && i < s->ndim; i++)
		at += (size_t)snprintf(buf + at, cap - at, "%s%lld",
				       i ? "x" : "", (long long)s->shape[i]);
	if (has_axis(ops))
		snprintf(buf + at, cap - at, " format.samples=first");
	else if (pen__opt_find(ops->opts, "samples"))
		snprintf(buf + at, cap - at, " format.samples=%llu",
			 (unsigned long long)s->nsamples);
}

static int write_shape(const struct pen_format_ops *ops, const struct shape *s,
		       struct pen_store *st, const char *path)
{
	struct pen_field field = { .name = "x",
				   .dtype = s->dtype,
				   .ndim = s->ndim };
	struct eng_set set = { .field = { { .dtype = s->dtype } },
			       .letters = has_letters(ops->name) };
	size_t row = 0;
	const void *data[1];
	struct pen_table t = { .nsamples = s->nsamples,
			       .nfields = 1,
			       .field = &field,
			       .data = data };
	uint8_t *p;
	int rc;

	memcpy(field.shape, s->shape, sizeof(s->shape));
	CHECK(pen__shape_bytes(s->shape, s->ndim, s->dtype, &row));
	p = malloc(row * s->nsamples);
	for (uint64_t i = 0; i < s->nsamples; i++)
		eng_fill(&set, 0, i, p + i * row, row);
	data[0] = p;
	rc = eng_put(st, path, ops->name, has_axis(ops) ? "samples=first" : "",
		     &t, NULL);
	free(p);
	return rc;
}

static void check_shape(struct pen_loader *l, const struct shape *s,
			unsigned kept)
{
	struct eng_set set = { .field = { { .dtype = s->dtype } },
			       .letters =
				       has_letters(pen_dataset_format(l->ds)) };
	uint8_t want[8192];
	struct pen_batch *b;
	uint64_t id = 0;
	size_t row = 0;

	CHECK(pen__shape_bytes(s->shape, s->ndim, s->dtype, &row));
	while (pen_loader_next(l, &b, NULL) == 0) {
		const struct pen_tensor *t = &b->tensors[0];

		CHECK_EQ(t->dtype, s->dtype);
		CHECK_EQ(t->nbytes, row * b->nsamples);
		CHECK(!(kept & AXES) || t->ndim == s->ndim + 1);
		for (uint32_t i = 0; i < b->nsamples; i++, id++) {
			eng_fill(&set, 0, id, want, row);
			CHECK_EQ(b->ids[i], id);
			CHECK(!(kept & BYTES) ||
			      !memcmp((uint8_t *)t->data + i * row, want, row));
		}
		pen_batch_unref(b);
	}
	CHECK_EQ(id, s->nsamples);
}

static void test_round_trip(const struct pen_format_ops *ops,
			    struct pen_store *st)
{
	for (size_t i = 0; i < NSHAPES; i++) {
		static const char *const how[] = { "store=posix", "store=ram",
						   "store=mmap" };
		const unsigned kept = keeps(ops, &shapes[i]);
		char path[64], read[256];
		struct pen_err err;
		int rc;

		snprintf(path, sizeof(path), "%s%zu%s", ops->name, i,
			 ops->suffixes[0]);
		reading(ops, &shapes[i], read, sizeof(read));
		rc = write_shape(ops, &shapes[i], st, path);
		if (!kept)
			CHECK(rc == PEN_EINVAL || rc == PEN_ENOTSUP);
		/* raw reads a record without axes as one axis */
		if (!kept || !CHECK_EQ(rc, 0) ||
		    (!shapes[i].ndim && pen__opt_find(ops->opts, "shape")))
			continue;
		for (size_t k = 0; k < 3; k++) {
			struct pen_loader *l = eng_open(&err,
							"%s %s %s batch_size=2",
							path, read, how[k]);

			if (!CHECK(l))
				fprintf(stderr, "%s: %s\n", err.where, err.msg);
			else
				check_shape(l, &shapes[i], kept);
			pen_loader_close(l);
		}
	}
}

/* ---- damage ---- */

static size_t slurp(const char *path, uint8_t *buf, size_t cap)
{
	int fd = open(path, O_RDONLY);
	ssize_t n = read(fd, buf, cap);

	close(fd);
	return n > 0 ? (size_t)n : 0;
}

/* A new file: truncating and refilling one would write it to disk. */
static void spill(const char *path, const uint8_t *p, size_t n)
{
	int fd;

	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0644);
	CHECK_EQ(write(fd, p, n), n);
	close(fd);
}

/* An error with a name, or batches that match the fields. */
static void read_damaged(const char *path, const char *read)
{
	struct pen_err err;
	struct pen_loader *l = eng_open(&err,
					"%s %s batch_size=3 threads=1 "
					"prefetch=1 memory=64MB",
					path, read);
	struct pen_batch *b;
	int rc = 0;

	for (int i = 0; l && !rc && i < 100; i++) {
		rc = pen_loader_next(l, &b, &err);
		for (uint32_t f = 0; !rc && f < b->ntensors; f++) {
			const struct pen_field *d =
				pen_dataset_field(pen_loader_dataset(l), f);

			CHECK_EQ(b->tensors[f].dtype, d->dtype);
			if (b->tensors[f].layout == PEN_RAGGED)
				CHECK(b->tensors[f].nbytes <=
				      b->nsamples * d->max_bytes);
			else
				CHECK_EQ(b->tensors[f].nbytes,
					 b->nsamples * d->max_bytes);
		}
		if (!rc)
			pen_batch_unref(b);
	}
	if (!l || rc < 0)
		CHECK(err.code < 0 && err.where[0] && err.msg[0]);
	pen_loader_close(l);
}

/* Larger files are mostly padding: they are cut at both ends and at a few
 * places between, and their zeros are flipped with one bit pattern at a time.
 */
#define LARGE 256

static bool is_cut_at(size_t i, size_t n)
{
	return n <= LARGE || i < 64 || n - i <= 64 || i % 7 == 0;
}

static bool is_flipped(const uint8_t *good, size_t i, size_t n, size_t k)
{
	return n <= LARGE || good[i] || i % 3 == k;
}

static void test_damage(const struct pen_format_ops *ops, struct pen_store *st)
{
	static const struct shape smalls[] = { { PEN_U16, 1, { 5 }, 4 },
					       { PEN_U8, 1, { 5 }, 4 },
					       { PEN_U8, 2, { 2, 5 }, 1 } };
	const struct shape *small = smalls;
	uint8_t good[4096], bad[4096];
	char path[64], read[256];
	size_t n;

	while (!keeps(ops, small))
		small++;
	snprintf(path, sizeof(path), "damaged%s", ops->suffixes[0]);
	reading(ops, small, read, sizeof(read));
	CHECK_EQ(write_shape(ops, small, st, path), 0);
	n = slurp(path, good, sizeof(good));
	CHECK(n && n < sizeof(good));
	for (size_t i = 0; i < n; i++) {
		if (!is_cut_at(i, n))
			continue;
		spill(path, good, i);
		read_damaged(path, read);
	}
	for (size_t i = 0; i < n; i = test_next_place(i, n)) {
		static const uint8_t flips[] = { 0x01, 0x80, 0xff };

		memcpy(bad, good, n);
		for (size_t k = 0; k < sizeof(flips); k++) {
			if (!is_flipped(good, i, n, k))
				continue;
			bad[i] = good[i] ^ flips[k];
			spill(path, bad, n);
			read_damaged(path, read);
		}
	}
	unlink(path);
}

/* ---- reads that fail ---- */

#define SMALL "batch_size=5 threads=2 queue_depth=3 prefetch=2 store=fault"

static struct pen_loader *open_faulty(const struct eng_set *s, const char *how,
				      struct pen_err *err)
{
	return eng_open(err, "%s %s " SMALL " sampler=shuffle %s", s->name,
			s->read, how);
}

/* on_error=fail: data before the error is unaffected. */
static bool fails_in_order(const struct eng_set *s, const char *how,
			   const struct pen_buf *clean)
{
	struct pen_buf got = { 0 };
	struct pen_err err, again;
	struct pen_loader *l = open_faulty(s, how, &err);
	int rc = l ? eng_run(l, 1, &got, &err) : err.code;

	if (rc < 0)
		CHECK(strncmp(err.where, s->name, strlen(s->name)) == 0);
	CHECK(rc == PEN_END || rc == PEN_EIO || rc == PEN_EDATA);
	CHECK(got.n <= clean->n && (rc < 0 || got.n == clean->n));
	CHECK(!got.n || memcmp(got.p, clean->p, got.n) == 0);
	if (l && rc < 0) {
		CHECK_EQ(eng_run(l, 1, NULL, &again), rc);
		CHECK_STR(again.msg, err.msg);
	}
	pen_loader_close(l);
	pen__buf_fini(&got);
	return rc < 0;
}

/* on_error=skip or substitute: all others once, and the bad ones are named. */
static void goes_on(const struct eng_set *s, const char *how, bool substitute)
{
	struct pen_err err, one;
	struct pen_loader *l = open_faulty(s, how, &err);
	unsigned seen[64] = { 0 };
	uint64_t n = 0, rows = 0, id;
	struct pen_batch *b;
	struct pen_stats st;

	if (!l) /* not even one file could be indexed */
		return;
	while (pen_loader_next(l, &b, &err) == 0) {
		uint64_t full = pen_dataset_nsamples(l->ds) - b->position;

		full = full < 5 ? full : 5;
		CHECK_EQ(b->nsamples + b->nskipped, full);
		CHECK(!substitute || s->varies || !b->nskipped);
		CHECK(eng_right(s, l->ds, b));
		rows += b->nsamples - b->nsubstituted;
		for (uint32_t i = 0; i < b->nsamples; i++)
			seen[b->ids[i]]++;
		pen_batch_unref(b);
	}
	pen_loader_stats(l, &st, sizeof(st));
	for (; pen_loader_skipped(l, n, &id, &one) == 0; n++) {
		CHECK(one.code < 0 && strstr(one.where, s->name));
		CHECK_EQ(seen[id], 0);
		seen[id] = 1;
	}
	CHECK_EQ(n, st.nskipped + st.nsubstituted);
	CHECK_EQ(rows + n, pen_dataset_nsamples(l->ds));
	for (uint64_t i = 0; i < pen_dataset_nsamples(l->ds); i++)
		CHECK(substitute ? seen[i] >= 1 : seen[i] == 1);
	pen_loader_close(l);
}

/* max_errors: one bad sample is tolerated, not more. */
static void too_many(const struct eng_set *s)
{
	struct pen_err err;
	struct pen_loader *l = open_faulty(s,
					   "on_error=skip max_errors=1 "
					   "store.fail_every=2",
					   &err);
	struct pen_stats st;

	if (!l) /* no file could be indexed */
		return;
	CHECK_EQ(eng_run(l, 1, NULL, &err), PEN_EIO);
	pen_loader_stats(l, &st, sizeof(st));
	CHECK(st.nskipped <= 1);
	pen_loader_close(l);
}

static long long largest(const struct eng_set *s)
{
	long long most = 0;

	for (uint32_t i = 0; i < s->nfiles; i++) {
		struct stat sb;
		char path[128];

		eng_file_name(s, i, path, sizeof(path));
		CHECK_EQ(stat(path, &sb), 0);
		most = sb.st_size > most ? sb.st_size : most;
	}
	return most;
}

static void test_faults(const struct eng_set *s)
{
	static const char *const kinds[] = {
		"store.fail_nth", "store.short_nth",
		"store.under=mmap store.fail_nth"
	};
	struct pen_buf clean = { 0 };
	struct pen_loader *l = open_faulty(s, "", NULL);
	char how[160];

	CHECK_EQ(eng_run(l, 1, &clean, NULL), PEN_END);
	pen_loader_close(l);
	for (size_t k = 0; k < 3; k++) {
		unsigned n = 0, quiet = 0;

		/* continue until there are fewer reads */
		while (quiet < 3 && (n += n < 20 ? 1 : TEST_EVERY(4)) < 400) {
			snprintf(how, sizeof(how), "%s=%u", kinds[k], n);
			quiet = fails_in_order(s, how, &clean) ? 0 : quiet + 1;
			if (k && n % 3)
				continue;
			snprintf(how, sizeof(how), "%s=%u on_error=skip",
				 kinds[k], n);
			goes_on(s, how, false);
			snprintf(how, sizeof(how), "%s=%u on_error=substitute",
				 kinds[k], n);
			goes_on(s, how, true);
		}
		CHECK(n > s->nfiles && n < 400);
	}
	goes_on(s, "on_error=substitute store.fail_every=4", true);
	/* somewhere in files, including tiny ones */
	snprintf(how, sizeof(how), "store.truncate=%d",
		 largest(s) > 70 ? 70 : 1);
	CHECK(fails_in_order(s, how, &clean));
	CHECK(!fails_in_order(s, "store.delay=50us store.delay_every=3",
			      &clean));
	goes_on(s, "on_error=skip max_errors=60 store.fail_every=3", false);
	too_many(s);
	pen__buf_fini(&clean);
}

/* ---- out of memory ---- */

static int whole_life(const struct eng_set *s, struct pen_err *err)
{
	struct pen_loader *l;
	int rc;

	l = eng_open(err,
		     "%s %s batch_size=6 threads=1 "
		     "prefetch=2 sampler=block sampler.chunk=4",
		     s->name, s->read);
	if (!l)
		return err->code;
	rc = eng_run(l, 1, NULL, err);
	pen_loader_close(l);
	return rc;
}

static void test_memory(const struct eng_set *s)
{
	unsigned fds = eng_count("/proc/self/fd");
	struct pen_err err;
	uint64_t total;

	pen__mem_fail_nth(0, false);
	CHECK_EQ(whole_life(s, &err), PEN_END);
	total = pen__mem_count();
	for (uint64_t n = 1; n <= total; n = eng_next_nth(n))
		for (int on = 0; on < 2; on++) {
			int rc;

			pen__mem_fail_nth(n, on);
			rc = whole_life(s, &err);
			pen__mem_fail_nth(0, false);
			/* EAGAIN: no memory for a thread */
			CHECK(rc == PEN_END || rc == PEN_ENOMEM ||
			      err.sys == EAGAIN);
		}
	CHECK_EQ(eng_count("/proc/self/fd"), fds);
}

int main(void)
{
	struct pen_store *st;

	eng_start("format");
	CHECK_EQ(pen__store_open(&st, "posix", NULL, 0, NULL), 0);
	for (unsigned i = 0; pen__format_at(i); i++) {
		const struct pen_format_ops *ops = pen__format_at(i);

		if (!ops->write)
			continue;
		test_round_trip(ops, st);
		test_damage(ops, st);
	}
	pen__store_close(st);
	for (size_t i = 0; i < ENG_NSETS; i++) {
		eng_make(&eng_sets[i]);
		test_faults(&eng_sets[i]);
		test_memory(&eng_sets[i]);
	}
	eng_end();
	return test_end();
}
