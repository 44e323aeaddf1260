/*
 * The loader as its user sees it: the same batches for any threads and store,
 * each sample once per epoch, and the data that was written comes out, whether
 * dense, ragged or padded.
 */
#include "engine.h"

static const char *const stores[] = {
	"store=posix",
	"store=uring",
	"store=mmap",
	"store=ram",
	"store=fault",
	"store=fault store.under=mmap",
	"store=posix open_files=1",
	"store=uring open_files=2",
	"store=mmap open_files=1",
	"store=mmap open_files=3",
	"store=fault queue_depth=64",
};
#define NSTORES (sizeof(stores) / sizeof(*stores))

static const char *const samplers[] = {
	"sampler=sequential",
	"sampler=shuffle",
	"sampler=block sampler.chunk=4 sampler.chunks=2",
	"sampler=block sampler.chunk=3 sampler.chunks=100",
	"sampler=weighted weights=%s.w.npy",
	"sampler=balanced labels=folder label_name=class",
	"sampler=balanced labels=%s.l.npy label_name=class",
};
#define NSAMPLERS (sizeof(samplers) / sizeof(*samplers))

static void make_all(void)
{
	double w[64], y[64];

	for (size_t i = 0; i < 64; i++) {
		w[i] = (double)(i % 5);
		y[i] = (double)(i % 3);
	}
	for (size_t i = 0; i < ENG_NSETS; i++) {
		const struct eng_set *s = &eng_sets[i];
		char path[64];

		eng_make(s);
		snprintf(path, sizeof(path), "%s.w.npy", s->name);
		eng_numbers(path, PEN_F64, w, eng_total(s));
		snprintf(path, sizeof(path), "%s.l.npy", s->name);
		eng_numbers(path, PEN_I64, y, eng_total(s));
	}
}

static void sampler_text(char *buf, size_t cap, size_t i, const char *set)
{
	const char *s = samplers[i], *hole = strstr(s, "%s");

	if (hole)
		snprintf(buf, cap, "%.*s%s%s", (int)(hole - s), s, set,
			 hole + 2);
	else
		snprintf(buf, cap, "%s", s);
}

static bool log_of(struct pen_buf *to, const struct eng_set *s,
		   const char *sampler, const char *store, unsigned threads)
{
	struct pen_err err;
	struct pen_loader *l =
		eng_open(&err,
			 "%s %s %s %s threads=%u batch_size=7 epochs=2 seed=3 "
			 "prefetch=3%s",
			 s->name, s->read, sampler, store, threads,
			 strstr(store, "uring") ? " queue_depth=5" : "");

	*to = (struct pen_buf){ 0 };
	if (!l && strstr(store, "uring"))
		return false; /* not here */
	if (!CHECK(l)) {
		fprintf(stderr, "%s: %s\n", err.where, err.msg);
		return false;
	}
	CHECK_EQ(eng_run(l, 2, to, &err), PEN_END);
	CHECK_EQ(eng_run(l, 1, NULL, &err), PEN_END); /* and stays ended */
	pen_loader_close(l);
	return true;
}

static void test_same(const struct eng_set *s, size_t sampler)
{
	struct pen_buf want, got;
	char text[128];

	sampler_text(text, sizeof(text), sampler, s->name);
	if (!log_of(&want, s, text, "store=posix", 1))
		return;
	for (size_t i = 0; i < NSTORES; i++)
		for (unsigned threads = 1; threads <= 8; threads += 7) {
			/* every store meets every set in some order */
			if ((i + sampler + threads / 8) % TEST_EVERY(5))
				continue;
			if (!log_of(&got, s, text, stores[i], threads))
				continue;
			if (!CHECK(eng_same(&want, &got)))
				fprintf(stderr, "  %s %s %s threads=%u\n",
					s->name, text, stores[i], threads);
			pen__buf_fini(&got);
		}
	pen__buf_fini(&want);
}

/* Content, and how often each sample came in one epoch. */
static void read_epoch(const struct eng_set *s, struct pen_loader *l,
		       unsigned *times, uint64_t *order)
{
	struct pen_batch *b;
	uint64_t n = 0;
	int rc;

	memset(times, 0, 64 * sizeof(*times));
	while ((rc = pen_loader_next(l, &b, NULL)) == 0) {
		CHECK(eng_right(s, pen_loader_dataset(l), b));
		CHECK_EQ(b->position, n);
		for (uint32_t i = 0; i < b->nsamples; i++) {
			times[b->ids[i]]++;
			order[n++] = b->ids[i];
		}
		pen_batch_unref(b);
	}
	CHECK_EQ(rc, PEN_END);
	CHECK_EQ(n, eng_total(s));
}

static void test_content(const struct eng_set *s, size_t sampler)
{
	bool draws = strstr(samplers[sampler], "weighted") ||
		     strstr(samplers[sampler], "balanced");
	bool sorted = strstr(samplers[sampler], "sequential");
	uint64_t order[2][64];
	unsigned times[64];
	char text[128];
	struct pen_loader *l;

	sampler_text(text, sizeof(text), sampler, s->name);
	l = eng_open(NULL, "%s %s %s batch_size=5 epochs=2 threads=3", s->name,
		     s->read, text);
	if (!CHECK(l))
		return;
	CHECK_EQ(pen_dataset_nsamples(pen_loader_dataset(l)), eng_total(s));
	CHECK_EQ(pen_dataset_nobjects(pen_loader_dataset(l)), s->nfiles);
	CHECK_EQ(pen_loader_nbatches(l), (eng_total(s) + 4) / 5);
	for (int e = 0; e < 2; e++) {
		read_epoch(s, l, times, order[e]);
		for (uint64_t i = 0; !draws && i < eng_total(s); i++)
			CHECK_EQ(times[i], 1);
		for (uint64_t i = 0; sorted && i < eng_total(s); i++)
			CHECK_EQ(order[e][i], i);
	}
	CHECK_EQ(memcmp(order[0], order[1], eng_total(s) * 8) == 0, sorted);
	pen_loader_close(l);
}

/* What is outside a row's own shape is zero, what is inside is the row. */
static void check_padded(const struct eng_set *s, struct pen_loader *l,
			 const struct pen_batch *b)
{
	const struct pen_tensor *t = &b->tensors[0];
	int64_t rows = t->shape[1], cols = t->shape[2];
	uint16_t want[64] = { 0 };

	CHECK_EQ(t->layout, PEN_PADDED);
	for (uint32_t r = 0; r < b->nsamples; r++) {
		const uint16_t *p = (uint16_t *)t->data + r * rows * cols;
		const int64_t *shape = t->shapes + (size_t)r * 2;
		uint64_t id = eng_origin(s, l->ds, b->ids[r]);
		int64_t own[2];
		bool ok = true;

		eng_fill(s, 0, id, want, eng_shape(s, 0, id, own));
		CHECK(own[0] == shape[0] && own[1] == shape[1]);
		for (int64_t i = 0; i < rows * cols; i++) {
			int64_t y = i / cols, x = i % cols;
			bool in = y < own[0] && x < own[1];

			ok = ok && p[i] == (in ? want[y * own[1] + x] : 0);
		}
		CHECK(ok);
	}
}

static void test_padded(const char *how)
{
	const struct eng_set *s = eng_find("npy_ragged");
	struct pen_loader *l = eng_open(NULL,
					"npy_ragged shapes=padded "
					"batch_size=5 sampler=shuffle "
					"epochs=2 %s",
					how);
	struct pen_batch *b;
	struct pen_stats st;
	int rc;

	if (!CHECK(l))
		return;
	do {
		rc = pen_loader_next(l, &b, NULL);
		if (rc)
			continue;
		CHECK(b->tensors[0].shape[1] == 2 &&
		      b->tensors[0].shape[2] == 4);
		check_padded(s, l, b);
		pen_batch_unref(b);
	} while (rc >= 0 && !l->ended);
	CHECK_EQ(rc, PEN_END);
	pen_loader_stats(l, &st, sizeof(st));
	CHECK_EQ(st.nsamples + st.nskipped,
		 2 * pen_dataset_nsamples(pen_loader_dataset(l)));
	pen_loader_close(l);
}

/*
 * The delay of a slow store counts as reading, wherever in a round it is
 * called: every read is late by at least this much, however busy the machine
 * is.
 */
static void test_late(const struct eng_set *s, const char *how)
{
	const uint64_t late = 50000;
	struct pen_loader *l = eng_open(NULL,
					"%s %s store=fault store.delay=50us "
					"batch_size=7 epochs=1 threads=2 %s",
					s->name, s->read, how);
	struct pen_stats st;

	if (!CHECK(l))
		return;
	CHECK_EQ(eng_run(l, 1, NULL, NULL), PEN_END);
	/* the thread that delivered the last batch may still have to count
	 * it */
	for (int i = 0; i < 1000; i++) {
		pen_loader_stats(l, &st, sizeof(st));
		if (st.read_ns >= st.nreads * late)
			break;
		sched_yield();
	}
	CHECK(st.nreads > 0);
	/* the timed reads too; lent memory is not read */
	if (strstr(how, "queue_depth"))
		CHECK(st.timed_reads && st.timed_reads <= st.nreads &&
		      st.best_read_ns >= late &&
		      st.timed_ns >= st.timed_reads * st.best_read_ns);
	if (!CHECK(st.read_ns >= st.nreads * late))
		fprintf(stderr, "%s %s: %llu reads\n", s->name, how,
			(unsigned long long)st.nreads);
	pen_loader_close(l);
}

/* Making rows counts as decoding for pixels or text, and as copying otherwise.
 * The durations are not checked. */
static void test_stages(const struct eng_set *s, bool decodes)
{
	struct pen_loader *l = eng_open(NULL,
					"%s %s batch_size=7 epochs=0 threads=2",
					s->name, s->read);
	struct pen_thread_times t;
	struct pen_stats st;

	if (!CHECK(l))
		return;
	CHECK_EQ(eng_run(l, 3, NULL, NULL), PEN_END);
	pen_loader_stats(l, &st, sizeof(st));
	/* a thread counts its time after it delivered what it worked on */
	for (int i = 0; !st.decode_ns && !st.emit_ns && i < 1000; i++) {
		CHECK_EQ(eng_run(l, 1, NULL, NULL), PEN_END);
		pen_loader_stats(l, &st, sizeof(st));
	}
	if (decodes)
		CHECK(st.decode_ns && !st.emit_ns);
	else
		CHECK(!st.decode_ns && st.emit_ns);
	CHECK(st.prefetch_wanted >= st.prefetch);
	/* the kernel updates a thread's time when it stops or at the tick */
	for (int i = 0; !st.cpu_ns && i < 1000; i++) {
		CHECK_EQ(eng_run(l, 1, NULL, NULL), PEN_END);
		pen_loader_stats(l, &st, sizeof(st));
	}
	CHECK(st.cpu_ns || !pen__thread_times(gettid(), &t));
	pen_loader_close(l);
}

static const struct eng_set images = { .name = "images",
				       .format = "jpeg",
				       .write = "",
				       .read = "",
				       .nfiles = 9,
				       .per_file = 1,
				       .field = { { .name = "x",
						    .dtype = PEN_U8,
						    .ndim = 3,
						    .shape = { 8, 8, 3 } } } };

/* Stopped repeatedly in the middle of samples that come in pieces, and then all
 * of them. */
static void test_left(const struct eng_set *s, const char *how)
{
	struct pen_buf want = { 0 }, got = { 0 };
	struct pen_loader *l = eng_open(NULL,
					"%s %s store=fault store.delay=5us "
					"batch_size=7 epochs=1 threads=2 "
					"read_size=48 on_error=skip %s",
					s->name, s->read, how);
	struct pen_state begin;
	struct pen_stats st;

	if (!CHECK(l))
		return;
	pen_loader_state(l, &begin);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pen_loader_restore(l, &begin, NULL), 0);
	CHECK_EQ(eng_run(l, 1, &got, NULL), PEN_END);
	pen_loader_stats(l, &st, sizeof(st));
	CHECK_EQ(st.nskipped, 0);
	pen_loader_close(l);
	l = eng_open(NULL, "%s %s batch_size=7 epochs=1 %s", s->name, s->read,
		     how);
	if (!CHECK(l))
		return;
	CHECK_EQ(eng_run(l, 1, &want, NULL), PEN_END);
	CHECK(eng_same(&got, &want));
	pen_loader_close(l);
	pen__buf_fini(&want);
	pen__buf_fini(&got);
}

int main(void)
{
	eng_start("loader");
	make_all();
	for (size_t i = 0; i < ENG_NSETS; i++)
		for (size_t k = 0; k < NSAMPLERS; k++) {
			test_same(&eng_sets[i], k);
			test_content(&eng_sets[i], k);
		}
	test_padded("store=posix");
	test_padded("store=mmap threads=5");
	test_padded("store=fault store.fail_every=4 on_error=skip");
	test_padded("store=fault store.fail_every=5 on_error=substitute");
	for (size_t i = 0; i < ENG_NSETS; i++) {
		test_late(&eng_sets[i], "queue_depth=4");
		test_late(&eng_sets[i], "read_size=48 decode=false");
		test_late(&eng_sets[i], "store.under=mmap");
		test_left(&eng_sets[i], "shuffle=true");
		test_left(&eng_sets[i], "sampler=sequential");
		test_stages(&eng_sets[i], !strcmp(eng_sets[i].format, "csv"));
	}
	if (pen__format_find(images.format)) {
		eng_make(&images);
		test_stages(&images, true);
	}
	eng_end();
	return test_end();
}
