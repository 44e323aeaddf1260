/*
 * Random access: a loader delivers the requested samples, of every format, in
 * the order of the requests; an error affects one request only. And what
 * callers from other languages also use: waiting with a timeout, keeping
 * batches, fields=, and the lists of formats and others.
 */
#include "base/rng.h"
#include "engine.h"

static struct pen_loader *__attribute__((format(printf, 2, 3)))
open_asked(struct pen_err *err, const char *fmt, ...)
{
	struct pen_loader *l = NULL;
	struct pen_spec *spec = NULL;
	char text[ENG_TEXT];
	va_list ap;
	int rc;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	*err = (struct pen_err){ 0 };
	rc = eng_spec(&spec, text, err);
	if (!rc)
		rc = pen_loader_open_asked(&l, spec, err);
	pen_spec_free(spec);
	CHECK_EQ(err->code, rc);
	return rc ? NULL : l;
}

#define MOST 16
#define REQUESTS 12

struct request {
	uint64_t id[MOST];
	uint32_t n;
};

static void draw(struct pen_rng *rng, struct request *r, uint64_t total)
{
	r->n = 1 + (uint32_t)pen__rng_below(rng, MOST);
	for (uint32_t i = 0; i < r->n; i++)
		r->id[i] = pen__rng_below(rng, total);
}

static bool answers(const struct eng_set *s, struct pen_loader *l,
		    const struct request *r)
{
	struct pen_err err = { 0 };
	struct pen_batch *b;
	bool ok;

	if (!CHECK_EQ(pen_loader_next(l, &b, &err), 0)) {
		fprintf(stderr, "%s: %s\n", err.where, err.msg);
		return false;
	}
	ok = CHECK_EQ(b->nsamples, r->n) &&
	     CHECK(!memcmp(b->ids, r->id, r->n * sizeof(*r->id))) &&
	     CHECK(eng_right(s, l->ds, b));
	pen_batch_unref(b);
	return ok;
}

static void check_set(const struct eng_set *s, const char *store,
		      unsigned threads)
{
	struct pen_rng rng = { pen__rng_key(threads, 5), 0 };
	struct request r[REQUESTS];
	struct pen_batch *b;
	struct pen_err err;
	struct pen_loader *l =
		open_asked(&err, "%s %s %s threads=%u batch_size=%d prefetch=3",
			   s->name, s->read, store, threads, MOST);

	if (!CHECK(l))
		return;
	for (unsigned round = 0; round < 3; round++) {
		CHECK_EQ(pen_loader_next(l, &b, &err), PEN_END);
		for (unsigned i = 0; i < REQUESTS; i++) {
			draw(&rng, &r[i], eng_total(s));
			CHECK_EQ(pen_loader_ask(l, r[i].id, r[i].n, &err), 0);
		}
		for (unsigned i = 0; i < REQUESTS; i++)
			if (!answers(s, l, &r[i]))
				break;
	}
	/* closed with requests that were never taken */
	for (unsigned i = 0; i < REQUESTS; i++)
		CHECK_EQ(pen_loader_ask(l, r[i].id, r[i].n, &err), 0);
	pen_loader_close(l);
}

static void test_sets(void)
{
	for (size_t i = 0; i < ENG_NSETS; i++)
		for (unsigned threads = 1; threads < 5; threads += 3) {
			check_set(&eng_sets[i], "store=posix", threads);
			check_set(&eng_sets[i], "store=mmap", threads);
		}
}

static void test_wrong(void)
{
	uint64_t id[MOST + 1] = { 0 };
	struct pen_state st;
	struct pen_err err;
	struct pen_loader *l;

	l = open_asked(&err, "npy_file format.samples=file batch_size=%d",
		       MOST);
	CHECK_EQ(pen_loader_ask(l, id, 0, &err), PEN_EINVAL);
	CHECK_EQ(pen_loader_ask(l, id, MOST + 1, &err), PEN_EINVAL);
	id[3] = 23;
	CHECK_EQ(pen_loader_ask(l, id, 4, &err), PEN_EINVAL);
	CHECK(strstr(err.msg, "23"));
	CHECK_EQ(pen_loader_ask(l, id, 3, &err), 0);
	pen_loader_state(l, &st);
	CHECK_EQ(st.length, 23);
	CHECK_EQ(pen_loader_restore(l, &st, &err), PEN_EINVAL);
	pen_loader_close(l);
	l = eng_open(&err, "npy_file format.samples=file");
	CHECK_EQ(pen_loader_ask(l, id, 1, &err), PEN_EINVAL);
	pen_loader_close(l);
}

/* One request fails; those before and after it do not. */
static void test_faults(void)
{
	const struct eng_set *s = eng_find("npz_packed");
	struct request r = { .n = 2 };
	struct pen_batch *b;
	struct pen_err err;
	struct pen_loader *l =
		open_asked(&err,
			   "%s %s store=fault store.fail_object=f005 "
			   "batch_size=4 threads=2",
			   s->name, s->read);

	/* index reads fail too, so it may not open at all */
	if (!l)
		return;
	for (uint64_t i = 0; i < 16; i++) {
		r.id[0] = i;
		r.id[1] = i + 1;
		CHECK_EQ(pen_loader_ask(l, r.id, 2, &err), 0);
	}
	for (uint64_t i = 0; i < 16; i++) {
		int rc = pen_loader_next(l, &b, &err);

		CHECK_EQ(rc < 0, i == 4 || i == 5);
		if (!rc)
			pen_batch_unref(b);
	}
	CHECK_EQ(pen_loader_next(l, &b, &err), PEN_END);
	pen_loader_close(l);
}

static void test_no_memory(void)
{
	uint64_t id[2] = { 3, 1 };
	struct pen_batch *b;
	struct pen_err err;
	struct pen_loader *l;

	for (uint64_t n = 1; n < 400; n++) {
		struct pen_spec *spec = NULL;
		char text[] = "npz_shared format.samples=first batch_size=2 "
			      "threads=2 prefetch=1";
		int rc;

		if (eng_spec(&spec, text, &err))
			abort();
		pen__mem_fail_nth(n, false);
		l = NULL;
		rc = pen_loader_open_asked(&l, spec, &err);
		if (!rc)
			rc = pen_loader_ask(l, id, 2, &err);
		if (!rc)
			rc = pen_loader_next(l, &b, &err);
		pen__mem_fail_nth(0, false);
		CHECK(rc == 0 || rc == PEN_ENOMEM || rc == PEN_EIO);
		if (!rc)
			pen_batch_unref(b);
		pen_loader_close(l);
		pen_spec_free(spec);
	}
}

static void test_within(void)
{
	struct pen_batch *b = NULL;
	struct pen_err err;
	struct pen_loader *l;
	unsigned again = 0;
	int rc;

	l = eng_open(&err,
		     "npy_file format.samples=file store=fault "
		     "store.delay=20ms batch_size=1 threads=1 queue_depth=1");
	if (!CHECK(l))
		return;
	do {
		rc = pen_loader_next_within(l, 1000000, &b, &err);
		again += rc == PEN_AGAIN;
	} while (rc == PEN_AGAIN);
	CHECK_EQ(rc, 0);
	CHECK(again > 0);
	CHECK_EQ(b->ids[0], 0);
	CHECK_EQ(b->end, 1);
	CHECK(pen_loader_wait_percentile(l, 100) > 1000000);
	pen_batch_unref(b);
	pen_loader_close(l);
}

/* A caller that keeps all batches gets more of them; the pool is as small as
 * before when they are returned. */
static void test_kept(void)
{
	const struct eng_set *s = eng_find("npz_shared");
	struct pen_batch *kept[64];
	struct pen_stats st;
	struct pen_err err;
	struct pen_loader *l;
	unsigned n = 0;

	l = eng_open(&err, "%s %s batch_size=1 prefetch=2 threads=2", s->name,
		     s->read);
	while (n < 64 && !pen_loader_next(l, &kept[n], &err))
		n++;
	CHECK_EQ(n, eng_total(s));
	for (unsigned i = 0; i < n; i++) {
		CHECK_EQ(kept[i]->ids[0], i);
		CHECK(eng_right(s, l->ds, kept[i]));
	}
	pen_loader_stats(l, &st, sizeof(st));
	CHECK(l->pool->nbatches >= n);
	for (unsigned i = 0; i < n; i++)
		pen_batch_unref(kept[i]);
	CHECK(l->pool->nbatches <= 3);
	pen_loader_close(l);
	/* and the last one may be returned long after */
	l = eng_open(&err, "%s %s batch_size=1 prefetch=1", s->name, s->read);
	for (n = 0; n < 8; n++)
		CHECK_EQ(pen_loader_next(l, &kept[n], &err), 0);
	pen_loader_close(l);
	while (n--)
		pen_batch_unref(kept[n]);
}

static void test_budget(void)
{
	struct pen_batch *kept[64];
	struct pen_err err;
	struct pen_loader *l;
	unsigned n = 0;
	int rc;

	l = eng_open(&err, "raw format.dtype=uint32 format.shape=2x5 "
			   "batch_size=1 prefetch=1 memory=40000");
	while (n < 64 && !(rc = pen_loader_next(l, &kept[n], &err)))
		n++;
	CHECK_EQ(rc, PEN_ENOMEM);
	CHECK(strstr(err.msg, "holds all"));
	CHECK(n >= 2);
	/* a caller that only polls would poll forever */
	CHECK_EQ(pen_loader_next_within(l, 0, &kept[n], &err), PEN_ENOMEM);
	pen_batch_unref(kept[--n]);
	CHECK_EQ(pen_loader_next(l, &kept[n++], &err), 0);
	while (n--)
		pen_batch_unref(kept[n]);
	pen_loader_close(l);
}

/* A batch may be larger than the data set: memory is for what is requested. */
static void test_large(const char *name, const char *how)
{
	const struct eng_set *s = eng_find(name);
	struct request two = { .id = { 3, 1 }, .n = 2 }, same = { .n = MOST };
	struct pen_batch *b;
	struct pen_err err;
	struct pen_loader *l = open_asked(&err,
					  "%s %s %s batch_size=100000 "
					  "prefetch=1 memory=100000",
					  s->name, s->read, how);
	uint64_t *many = pen__calloc(100000, sizeof(*many));

	for (unsigned i = 0; many && i < 100000; i++)
		many[i] = i % 8;
	if (CHECK(l && many)) {
		CHECK_EQ(pen_loader_ask(l, two.id, two.n, &err), 0);
		CHECK_EQ(pen_loader_ask(l, same.id, same.n, &err), 0);
		CHECK(answers(s, l, &two) && answers(s, l, &same));
		/* repeated samples need more memory than there is */
		CHECK_EQ(pen_loader_ask(l, many, 100000, &err), 0);
		CHECK_EQ(pen_loader_ask(l, two.id, two.n, &err), 0);
		CHECK_EQ(pen_loader_next(l, &b, &err), PEN_ENOMEM);
		CHECK(strstr(err.msg, "a batch needs"));
		CHECK(answers(s, l, &two));
	} else {
		fprintf(stderr, "%s: %s\n", err.where, err.msg);
	}
	pen_loader_close(l);
	pen__free(many);
}

static void test_fields(void)
{
	static const char *const sets[] = { "npz_file", "npz_shared",
					    "tfrecord" };
	struct pen_batch *b;
	struct pen_err err;
	struct pen_loader *l;

	for (size_t i = 0; i < 3; i++) {
		const struct eng_set *s = eng_find(sets[i]);

		l = eng_open(&err, "%s %s fields=y", s->name, s->read);
		if (!CHECK(l))
			continue;
		CHECK_EQ(pen_loader_next(l, &b, &err), 0);
		CHECK_EQ(b->ntensors, 1);
		CHECK_STR(b->tensors[0].name, "y");
		pen_batch_unref(b);
		pen_loader_close(l);
	}
	CHECK(!eng_open(&err, "raw format.dtype=uint32 format.shape=2x5 "
			      "fields=z"));
	CHECK_EQ(err.code, PEN_EINVAL);
	CHECK(strstr(err.msg, "choose from: x"));
}

static void test_lists(void)
{
	struct pen_option o;
	bool found = false;
	unsigned n = 0;

	CHECK_STR(pen_format_for("a/b.h5ad"), "h5ad");
	CHECK(!pen_format_for("a/b.none"));
	CHECK(!pen_name_at("nothing", 0));
	while (pen_name_at("format", n))
		found = !strcmp(pen_name_at("format", n++), "npz") || found;
	CHECK(found);
	CHECK(pen_name_at("store", 0) && pen_name_at("sampler", 0));
	CHECK_EQ(pen_option_at("loader", NULL, 0, &o, sizeof(o)), 0);
	CHECK_STR(o.name, "format");
	CHECK_EQ(pen_option_at("sampler", "block", 0, &o, sizeof(o)), 0);
	CHECK_STR(o.name, "chunk");
	CHECK_STR(o.dflt, "64");
	CHECK_EQ(pen_option_at("sampler", "block", 99, &o, sizeof(o)),
		 PEN_ENOTFOUND);
	CHECK_EQ(pen_option_at("sampler", "none", 0, &o, sizeof(o)),
		 PEN_ENOTFOUND);
	CHECK_EQ(pen_option_at("format", NULL, 0, &o, sizeof(o)),
		 PEN_ENOTFOUND);
	CHECK_EQ(pen_option_at("store", "posix", 0, &o, sizeof(o)), 0);
}

int main(void)
{
	eng_start("ask");
	for (size_t i = 0; i < ENG_NSETS; i++)
		eng_make(&eng_sets[i]);
	test_sets();
	test_wrong();
	test_faults();
	test_no_memory();
	test_within();
	test_kept();
	test_budget();
	test_large("npy_file", "");
	test_large("npy_ragged", "");
	test_large("npy_ragged", "shapes=padded pad_to=data");
	test_fields();
	test_lists();
	eng_end();
	return test_end();
}
