/*
 * take= and read_size=: the first elements of every sample in C order, and
 * zeros where it has fewer, for any format, store, threads and pieces it is
 * read in. What is not kept is read and checked anyway.
 */
#include <errno.h>
#include <fcntl.h>

#include "take.h"

/* A shape to take, and its number of elements. */
struct shape {
	const char *text;
	uint32_t ndim;
	size_t n;
};

static const struct shape shapes[] = {
	{ "1", 1, 1 },
	{ "2x3", 2, 6 },
	{ "[13, 7]", 2, 91 }, /* more than many have */
	{ "5x1x1001", 3, 5005 },
};
#define NSHAPES (sizeof(shapes) / sizeof(*shapes))

/* The first n elements, then zeros. */
static bool is_start(struct pen_span got, struct pen_span whole)
{
	size_t n = got.n < whole.n ? got.n : whole.n;

	if (n && memcmp(got.p, whole.p, n) != 0)
		return false;
	for (; n < got.n; n++)
		if (got.p[n])
			return false;
	return true;
}

static bool same(struct pen_span a, struct pen_span b)
{
	return a.n == b.n && (!a.n || memcmp(a.p, b.p, a.n) == 0);
}

static bool right(const struct eng_set *s, const struct pen_loader *l,
		  const struct take_ref *ref, const struct shape *take,
		  const struct pen_batch *b)
{
	const uint32_t cut = l->pool->crop.field;
	const struct pen_tensor *t = &b->tensors[cut];
	bool ok = CHECK_EQ(b->ntensors, ref->nfields);

	if (take)
		ok = ok && CHECK_EQ(t->layout, PEN_DENSE) &&
		     CHECK_EQ(t->ndim, take->ndim + 1) &&
		     CHECK_EQ(t->row_ndim, take->ndim) &&
		     CHECK(!t->shapes && !t->offsets) &&
		     CHECK_EQ(t->shape[0], b->nsamples) &&
		     CHECK_EQ(t->dtype, ref->dtype[cut]) &&
		     CHECK_EQ(t->nbytes,
			      b->nsamples * take->n * pen_dtype_size(t->dtype));
	for (uint32_t r = 0; ok && r < b->nsamples; r++)
		for (uint32_t f = 0; ok && f < b->ntensors; f++) {
			struct pen_span row = take_row(b, f, r);
			uint64_t id = eng_origin(s, l->ds, b->ids[r]);
			struct pen_span whole = ref->row[id][f];

			bool padded = b->tensors[f].layout == PEN_PADDED;

			ok = CHECK((take && f == cut) || padded
					   ? is_start(row, whole)
					   : same(row, whole));
		}
	return ok;
}

/* All batches of one run; the code it ended with. */
static int run(struct pen_loader *l, const struct eng_set *s,
	       const struct take_ref *ref, const struct shape *take, bool *ok)
{
	struct pen_batch *b;
	uint64_t n = 0;
	int rc;

	*ok = true;
	while ((rc = pen_loader_next(l, &b, NULL)) == 0) {
		*ok = *ok && right(s, l, ref, take, b);
		n += b->nsamples;
		pen_batch_unref(b);
	}
	if (rc == PEN_END)
		*ok = *ok && CHECK_EQ(n, ref->n);
	return rc;
}

static void try_one(const struct eng_set *s, const struct take_ref *ref,
		    const struct shape *take, const char *how,
		    const char *store)
{
	struct pen_loader *l;
	char text[256];
	bool ok;

	snprintf(text, sizeof(text), "%s batch_size=5 seed=4%s", how,
		 strstr(store, "uring") ? " queue_depth=7" : "");
	l = take_open(s, text, store);
	if (!l)
		return;
	if (!CHECK_EQ(run(l, s, ref, take, &ok), PEN_END) || !ok)
		fprintf(stderr, "  %s %s %s take %s\n", s->name, how, store,
			take ? take->text : "all");
	pen_loader_close(l);
}

static const char *take_text(const struct shape *take, char *buf, size_t cap)
{
	size_t n = 0;

	/* settings are split at blanks here */
	snprintf(buf, cap, "take=%s", take->text);
	for (size_t i = 0; buf[i]; i++)
		if (buf[i] != ' ')
			buf[n++] = buf[i];
	buf[n] = '\0';
	return buf;
}

static void test_take(const struct eng_set *s, const struct take_ref *ref,
		      const char *store)
{
	static const char *const how[] = {
		"threads=1 sampler=shuffle",
		"threads=8 sampler=block sampler.chunk=3 sampler.chunks=2",
	};

	/* all shapes over the first store; then few threads or many */
	for (size_t i = 0; i < NSHAPES; i++)
		for (size_t k = 0; k < 2; k++) {
			char text[256], one[64];

			if (store != take_stores[0] && (i + k) % 2)
				continue;
			snprintf(text, sizeof(text), "%s %s", how[k],
				 take_text(&shapes[i], one, sizeof(one)));
			try_one(s, ref, &shapes[i], text, store);
		}
	try_one(s, ref, &shapes[1], "take=2x3 shapes=padded threads=3", store);
}

/* Largest read in bytes; one and seven are a lot of reads. */
static void test_read_size(const struct eng_set *s, const struct take_ref *ref,
			   const char *store)
{
	static const char *const sizes[] = { "1", "7", "4096", "65537" };
	bool slow = strstr(store, "direct") || strstr(store, "delay");
	size_t first = ref->bytes > 20000 ? 2 : 0;

	if (slow && !first) /* every byte needs a block */
		first = strstr(s->name, "_first") || s->varies ? 1 : 2;
	for (size_t i = first; i < 4; i++)
		for (unsigned threads = slow ? 8 : 1; threads <= 8;
		     threads += 7) {
			char text[256];

			snprintf(text, sizeof(text),
				 "threads=%u sampler=shuffle read_size=%s",
				 threads, sizes[i]);
			try_one(s, ref, NULL, text, store);
			snprintf(text, sizeof(text),
				 "threads=%u sampler=block sampler.chunk=4 "
				 "read_size=%s take=5x1x1001",
				 threads, sizes[i]);
			try_one(s, ref, &shapes[3], text, store);
		}
}

/* As many reads as pieces. */
static void test_nreads(void)
{
	const struct eng_set *s = take_find("npy_big");
	static const struct {
		const char *how;
		uint64_t each; /* reads of a sample of 169412 bytes */
	} cases[] = {
		{ "", 1 },
		{ "read_size=200k", 1 },
		{ "read_size=169412", 1 },
		{ "read_size=169411", 2 },
		{ "read_size=65537", 3 },
		{ "read_size=4096", 42 },
		{ "read_size=1001", 170 },
		{ "read_size=4096 take=3", 42 },
		{ "read_size=4096 decode=false", 42 },
		{ "take=3", 1 },
		/* elements that are converted come in one piece */
		{ "read_size=1000 take=5000 cast=float64", 151 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct pen_loader *l =
			take_open(s, cases[i].how, "store=posix");
		struct pen_stats st;

		if (!l)
			continue;
		CHECK_EQ(eng_run(l, 1, NULL, NULL), PEN_END);
		pen_loader_stats(l, &st, sizeof(st));
		if (!CHECK_EQ(st.nreads, cases[i].each * s->nfiles))
			fprintf(stderr, "  %s\n", cases[i].how);
		CHECK_EQ(st.read_bytes, (uint64_t)169412 * s->nfiles);
		pen_loader_close(l);
	}
}

/* ---- errors ---- */

static void flip(const char *path, off_t at)
{
	int fd = open(path, O_RDWR);
	uint8_t c;

	CHECK(pread(fd, &c, 1, at) == 1);
	c ^= 0x10;
	CHECK(pwrite(fd, &c, 1, at) == 1);
	close(fd);
}

/* The checksum of a member covers all of it, including what is not taken. */
static void test_damage(const char *set, const char *store, const char *how,
			int want)
{
	const struct eng_set *s = take_find(set);
	char path[128], text[128];
	struct pen_err err = { 0 };
	struct pen_loader *l;
	struct stat sb;

	eng_file_name(s, 1, path, sizeof(path));
	CHECK_EQ(stat(path, &sb), 0);
	/* x is the first member, and this is behind its taken part */
	flip(path, sb.st_size / 4);
	snprintf(text, sizeof(text), "threads=2 batch_size=2 %s", how);
	l = take_open(s, text, store);
	if (l && !CHECK_EQ(eng_run(l, 1, NULL, &err), want))
		fprintf(stderr, "  %s %s %s: %s\n", set, how, store, err.msg);
	CHECK(!l || want == PEN_END || strstr(err.where, path));
	pen_loader_close(l);
	flip(path, sb.st_size / 4);
}

/* A read that ends early or fails: what came before it is right. */
static void test_short(const struct eng_set *s, const struct take_ref *ref,
		       const char *kind)
{
	unsigned n, quiet = 0, failed = 0;

	for (n = 1; quiet < 2 && n < 400; n += n < 60 ? 1 : 17) {
		struct pen_err err = { 0 };
		struct pen_loader *l;
		bool ok = true;
		int rc;

		l = eng_open(&err,
			     "%s %s take=2x3 read_size=4096 threads=2 "
			     "batch_size=4 store=fault %s=%u",
			     s->name, s->read, kind, n);
		rc = l ? run(l, s, ref, &shapes[1], &ok) : err.code;
		pen_loader_close(l);
		CHECK(ok && (rc == PEN_END || rc == PEN_EIO ||
			     rc == PEN_EDATA || rc == PEN_ESTALE));
		quiet = rc == PEN_END ? quiet + 1 : 0;
		failed += rc != PEN_END;
	}
	CHECK(failed >= s->nfiles);
}

/* on_error=: the other samples come, in their shape. */
static void test_policy(const char *set, const char *policy)
{
	const struct eng_set *s = take_find(set);
	struct pen_loader *l;
	struct take_ref ref;
	struct pen_stats st;
	struct pen_batch *b;
	uint64_t n = 0;
	int rc;

	take_ref_init(&ref, s);
	l = eng_open(NULL,
		     "%s %s take=2x3 read_size=512 batch_size=4 threads=2 "
		     "store=fault store.fail_every=11 on_error=%s",
		     s->name, s->read, policy);
	if (!CHECK(l != NULL))
		return;
	while ((rc = pen_loader_next(l, &b, NULL)) == 0) {
		CHECK(right(s, l, &ref, &shapes[1], b));
		n += b->nsamples;
		pen_batch_unref(b);
	}
	pen_loader_stats(l, &st, sizeof(st));
	CHECK_EQ(rc, PEN_END);
	CHECK(st.nskipped + st.nsubstituted > 0);
	CHECK_EQ(n + st.nskipped, pen_dataset_nsamples(l->ds));
	pen_loader_close(l);
	take_ref_fini(&ref);
}

static const struct eng_set rows = {
	.name = "rows",
	.format = "raw",
	.read = "format.shape=65536",
	.nfiles = 1,
	.per_file = 60,
	.field = { { .name = "x",
		     .dtype = PEN_U8,
		     .ndim = 1,
		     .shape = { 65536 } } },
};

/* A mapped file that shrinks while it is read and dropped. */
static void test_shrinks(const char *how, const char *policy)
{
	struct pen_err err = { 0 };
	struct pen_batch *b;
	struct pen_loader *l;
	struct pen_stats st;
	uint64_t n = 0;
	char path[128];
	int rc;

	eng_make(&rows);
	eng_file_name(&rows, 0, path, sizeof(path));
	l = eng_open(&err,
		     "rows %s batch_size=2 prefetch=2 threads=2 "
		     "on_error=%s store=mmap %s",
		     rows.read, policy, how);
	if (!CHECK(l))
		return;
	CHECK_EQ(pen_loader_next(l, &b, &err), 0);
	pen_batch_unref(b);
	/* within a row: its start is still valid */
	CHECK_EQ(truncate(path, 65536 * 20 + 8192), 0);
	while ((rc = pen_loader_next(l, &b, &err)) == 0) {
		n += b->nsamples;
		pen_batch_unref(b);
	}
	pen_loader_stats(l, &st, sizeof(st));
	if (strcmp(policy, "fail") == 0) {
		CHECK(rc < 0 && strstr(err.where, path));
	} else {
		CHECK_EQ(rc, PEN_END);
		CHECK_EQ(st.nskipped, 40);
		CHECK_EQ(n, 18);
	}
	pen_loader_close(l);
}

/* More files than stay mapped: each piece releases its map. */
static void test_many_maps(void)
{
	const struct eng_set *s = eng_find("npy_file");
	unsigned before = eng_count("/proc/self/map_files"), most = 0;
	struct pen_loader *l;
	struct pen_batch *b;
	char from[128], to[64];

	eng_file_name(s, 0, from, sizeof(from));
	CHECK_EQ(mkdir("many", 0755), 0);
	for (unsigned i = 0; i < 33000; i++) {
		snprintf(to, sizeof(to), "many/%05u.npy", i);
		if (link(from, to))
			return; /* fewer here */
	}
	l = eng_open(NULL,
		     "many %s store=mmap open_files=2 read_size=5 take=9 "
		     "threads=1 batch_size=50 subset=0:1000",
		     s->read);
	while (l && pen_loader_next(l, &b, NULL) == 0) {
		unsigned now = eng_count("/proc/self/map_files");

		most = now > most ? now : most;
		pen_batch_unref(b);
	}
	CHECK(l && most < before + 200);
	pen_loader_close(l);
	eng_remove("many");
}

/* ---- rejected settings ---- */

static void refused(int code, const char *where, const char *how)
{
	struct pen_err err;
	struct pen_loader *l = eng_open(&err, "%s", how);

	CHECK(!l);
	if (!CHECK_EQ(err.code, code))
		fprintf(stderr, "  %s\n", how);
	CHECK_STR(err.where, where);
	pen_loader_close(l);
}

static void test_refused(void)
{
	refused(PEN_EINVAL, "take", "npy_file take=3x0");
	refused(PEN_EINVAL, "take",
		"npy_file take=1000000000x1000000000x1000000000");
	/* fits in bytes of one type but not of the other */
	refused(PEN_EINVAL, "take",
		"npy_file take=5000000000000000000 cast=bool");
	refused(PEN_ENOMEM, "memory",
		"npy_file take=1000000000x1000000000 batch_size=16777216");
	refused(PEN_ENOMEM, "memory", "npy_file take=4000000000000000000");
	refused(PEN_EINVAL, "cast", "npy_file cast=float33");
	refused(PEN_EINVAL, "cast", "npy_file cast=complex64");
	refused(PEN_EINVAL, "cast", "npy_ragged cast=float32");
	/* a packed row differs from its padded place */
	refused(PEN_EINVAL, "cast", "npy_ragged cast=float32 shapes=padded");
}

/* ---- out of memory ---- */

static int whole_life(const struct eng_set *s, const char *how,
		      struct pen_err *err)
{
	struct pen_loader *l;
	int rc;

	l = eng_open(err,
		     "%s %s batch_size=6 threads=1 "
		     "prefetch=2 sampler=block sampler.chunk=4 %s",
		     s->name, s->read, how);
	if (!l)
		return err->code;
	rc = eng_run(l, 1, NULL, err);
	pen_loader_close(l);
	return rc;
}

static void test_memory(const struct eng_set *s, const char *how)
{
	unsigned fds = eng_count("/proc/self/fd");
	struct pen_err err;
	uint64_t total;

	pen__mem_fail_nth(0, false);
	CHECK_EQ(whole_life(s, how, &err), PEN_END);
	total = pen__mem_count();
	for (uint64_t n = 1; n <= total; n = eng_next_nth(n))
		for (int on = 0; on < 2; on++) {
			int rc;

			pen__mem_fail_nth(n, on);
			rc = whole_life(s, how, &err);
			pen__mem_fail_nth(0, false);
			/* EAGAIN: no memory for a thread */
			CHECK(rc == PEN_END || rc == PEN_ENOMEM ||
			      err.sys == EAGAIN);
		}
	CHECK_EQ(eng_count("/proc/self/fd"), fds);
}

static void test_all_memory(void)
{
	static const char *const sets[] = { "npy_file", "npz_shared", "csv",
					    "h5_gzip", "npz_ragged" };

	for (size_t i = 0; i < 5; i++) {
		const struct eng_set *s = take_find(sets[i]);

		test_memory(s, "take=2x3 read_size=16 store=posix");
		test_memory(s, "take=2x3 cast=float64 store=mmap");
		test_memory(s, "decode=false store=posix");
	}
}

static void test_errors(void)
{
	static const char *const stores[] = { "store=posix",
					      "store=posix store.direct=true",
					      "store=uring", "store=mmap",
					      "store=ram" };

	for (size_t i = 0; i < 5; i++) {
		test_damage("npz_big", stores[i], "take=10", PEN_EDATA);
		test_damage("npz_big", stores[i], "take=10 read_size=4096",
			    PEN_EDATA);
		test_damage("npz_big", stores[i], "decode=false", PEN_END);
		test_damage("npz_big_packed", stores[i], "take=10", PEN_EDATA);
		test_damage("npz_big_packed", stores[i],
			    "take=10 read_size=777", PEN_EDATA);
		test_damage("npz_big_packed", stores[i], "decode=false",
			    PEN_END);
		/* without checksums only what is kept matters */
		test_damage("npy_big", stores[i], "take=10", PEN_END);
	}
	test_policy("npy_file", "skip");
	test_policy("npy_file", "substitute");
	test_policy("npy_ragged", "skip");
	test_policy("npz_packed", "skip");
	test_policy("tfrecord", "skip");
	test_shrinks("take=100", "fail");
	test_shrinks("take=100", "skip");
	test_shrinks("take=100 read_size=5000", "skip");
	test_shrinks("take=100 cast=float32 read_size=5000", "skip");
	test_shrinks("decode=false", "skip");
	test_shrinks("decode=false", "fail");
	test_shrinks("decode=false read_size=4096", "skip");
}

int main(void)
{
	const struct eng_set *s;

	eng_start("take");
	for (size_t i = 0; (s = take_set(i)) != NULL; i++) {
		struct take_ref ref;

		eng_make(s);
		take_ref_init(&ref, s);
		for (size_t k = 0; ref.n && k < TAKE_NSTORES; k++) {
			if (k && (i + k) % TEST_EVERY(3))
				continue;
			test_take(s, &ref, take_stores[k]);
			test_read_size(s, &ref, take_stores[k]);
		}
		test_short(s, &ref,
			   i % 2 ? "store.short_nth" : "store.fail_nth");
		take_ref_fini(&ref);
	}
	test_nreads();
	test_refused();
	test_errors();
	test_many_maps();
	test_all_memory();
	eng_end();
	return test_end();
}
