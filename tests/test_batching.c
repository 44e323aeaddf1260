/*
 * Batches of samples of different length: cut by tokens, packed into rows, and
 * padded with a value. The contents of a batch are compared with the same rules
 * implemented here in the simplest way; and for any ranks, threads and states,
 * every sample comes exactly once and is what was written.
 */
#include "batching.h"
#include "engine.h"
#include "make/maker.h"
#include "make/synth_cells.h"

#define N 61
#define MOST 40

struct set {
	const char *name, *format, *write, *read;
	bool label;
	uint32_t least; /* length of the shortest */
};

static const struct set sets[] = {
	{ "npy", "npy", "samples=file", "format.samples=file", false, 0 },
	{ "npz", "npz", "samples=file compress=true", "format.samples=file",
	  true, 1 },
	{ "tfr", "tfrecord", "", "", true, 1 },
	{ "idx", "mmap_indexed_binary", "", "format.dtype=uint32", false, 1 },
};
#define NSETS (sizeof(sets) / sizeof(*sets))

static uint32_t length_of(const struct set *s, uint64_t id)
{
	return s->least +
	       (uint32_t)(pen__rng_at(99, id) % (MOST + 1 - s->least));
}

static uint32_t item(uint64_t id, uint32_t i)
{
	return (uint32_t)(id * 1000 + i + 1);
}

static void make(const struct set *s)
{
	for (uint32_t id = 0; id < N; id++) {
		struct pen_field field[2] = {
			{ .name = "x",
			  .dtype = strcmp(s->format, "tfrecord") ? PEN_U32
								 : PEN_I64,
			  .ndim = 1,
			  .shape = { length_of(s, id) } },
			{ .name = "y", .dtype = PEN_I64 },
		};
		const bool wide = field[0].dtype == PEN_I64;
		uint32_t x[MOST + 1];
		int64_t xl[MOST + 1], y = (int64_t)id * 7;
		const void *data[] = { wide ? (void *)xl : x, &y };
		struct pen_table t = { .nsamples = 1,
				       .nfields = s->label ? 2 : 1,
				       .field = field,
				       .data = data };
		char path[64];

		for (uint32_t i = 0; i < MOST; i++)
			xl[i] = x[i] = item(id, i);
		snprintf(path, sizeof(path), "%s/f%03u%s", s->name, id,
			 pen__format_find(s->format)->suffixes[0]);
		CHECK_EQ(eng_write(path, s->format, s->write, &t, NULL), 0);
	}
}

struct epoch {
	uint64_t id[N];	     /* the order */
	uint32_t len[4 * N]; /* of it, and again from its start */
};

struct batch {
	uint64_t first, end; /* end: of the step */
	uint32_t n;
};

/* This rank's batches from a position on, without empty ones, which are never
 * seen. */
static uint32_t expect(const struct rule *r, const struct epoch *e,
		       const char *tail, uint64_t pos, unsigned rank,
		       unsigned world, struct batch *out)
{
	const bool pad = !strcmp(tail, "pad");
	uint32_t n = 0;

	while (pos < N) {
		struct batch mine = { 0 };
		bool whole = true;

		for (unsigned k = 0; k < world; k++) {
			const uint64_t left = pad ? 4 * N - pos : N - pos;
			bool full = false;
			uint32_t m = 0;

			if (left)
				m = batch_of(r, e->len + pos, (uint32_t)left,
					     &full);
			if (k == rank)
				mine = (struct batch){ pos, 0, m };
			pos += m;
			whole = whole && full;
		}
		if (!strcmp(tail, "drop") && !whole)
			break;
		pos = pos < N ? pos : N;
		mine.end = pos;
		if (mine.n)
			out[n++] = mine;
	}
	return n;
}

static void order_of(const struct set *s, const char *how, unsigned epoch,
		     struct epoch *e)
{
	struct pen_loader *l = eng_open(NULL, "%s %s %s epochs=%u batch_size=1",
					s->name, s->read, how, epoch + 1);
	struct pen_batch *b;
	uint32_t n = 0;

	for (unsigned ends = 0; l && ends <= epoch;) {
		int rc = pen_loader_next(l, &b, NULL);

		if (rc == PEN_END) {
			ends++;
			continue;
		}
		if (!CHECK_EQ(rc, 0))
			break;
		if (ends == epoch)
			e->id[n++] = b->ids[0];
		pen_batch_unref(b);
	}
	CHECK_EQ(n, N);
	pen_loader_close(l);
	for (uint32_t i = 0; i < 4 * N; i++)
		e->len[i] = length_of(s, e->id[i % N]);
}

/* ---- contents of a batch ---- */

static int64_t number(const struct pen_tensor *t, size_t i)
{
	return (int64_t)pen__number_at(t->data, t->dtype, i);
}

static bool is_sample(const struct pen_tensor *t, size_t at, uint64_t id,
		      uint32_t from, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (number(t, at + i) != item(id, from + i))
			return false;
	return true;
}

/* Rows of a ragged or padded batch, and labels. */
static void check_rows(const struct set *s, const struct rule *r,
		       const struct pen_batch *b)
{
	const struct pen_tensor *t = &b->tensors[0];
	uint64_t longest = 0;

	CHECK_EQ(b->ntensors, s->label ? 2 : 1);
	for (uint32_t i = 0; i < b->nsamples; i++) {
		const uint32_t n = length_of(s, b->ids[i]);
		size_t at = (size_t)i * (size_t)t->shape[1];

		longest = n > longest ? n : longest;
		if (t->layout == PEN_RAGGED)
			at = (size_t)t->offsets[i];
		CHECK_EQ(t->shapes[i], n);
		CHECK(is_sample(t, at, b->ids[i], 0, n));
		for (int64_t k = n; r->padded && k < t->shape[1]; k++)
			CHECK_EQ(number(t, at + (size_t)k), 0);
		if (s->label)
			CHECK_EQ(number(&b->tensors[1], i), b->ids[i] * 7);
	}
	if (r->padded)
		CHECK_EQ(t->shape[1], (longest + r->multiple - 1) /
					      r->multiple * r->multiple);
	else
		CHECK_EQ(t->offsets[b->nsamples], t->shape[0]);
}

/* A packed batch: every element belongs to a sample, or is padding. */
static void check_packed(const struct set *s, const struct rule *r,
			 const struct pen_batch *b)
{
	const struct pen_tensor *t = &b->tensors[0];
	const struct pen_tensor *seg = &b->tensors[b->ntensors - 2];
	const struct pen_tensor *pos = &b->tensors[b->ntensors - 1];
	const int32_t *sg = seg->data, *ps = pos->data;
	size_t at = 0, all = (size_t)r->rows * r->pack, row = SIZE_MAX;
	int32_t nth = 0;

	CHECK_EQ(b->ntensors, s->label ? 4 : 3);
	CHECK_STR(seg->name, "x.segment");
	CHECK_STR(pos->name, "x.position");
	CHECK(t->ndim == 2 && t->shape[0] == r->rows && t->shape[1] == r->pack);
	CHECK(seg->ndim == 2 && seg->nbytes == all * 4);
	for (uint32_t i = 0; i <= b->nsamples; i++) {
		const size_t from = (size_t)t->offsets[i];
		const bool end = i == b->nsamples;
		uint32_t n = end ? 0 : (uint32_t)t->shapes[i], whole, skip = 0;

		for (; at < from; at++)
			CHECK(!number(t, at) && !sg[at] && !ps[at]);
		if (end || !n)
			continue;
		whole = length_of(s, b->ids[i]);
		CHECK(from / r->pack == (from + n - 1) / r->pack);
		if (whole > r->pack && r->split)
			skip = (uint32_t)(number(t, from) - 1) % 1000;
		CHECK_EQ(skip % r->pack, 0);
		CHECK_EQ(n, whole - skip < r->pack ? whole - skip : r->pack);
		CHECK(is_sample(t, from, b->ids[i], skip, n));
		nth = from / r->pack == row ? nth + 1 : 1;
		row = from / r->pack;
		for (uint32_t k = 0; k < n; k++, at++) {
			CHECK_EQ(ps[at], k);
			CHECK_EQ(sg[at], nth);
		}
		if (s->label)
			CHECK_EQ(number(&b->tensors[1], i), b->ids[i] * 7);
	}
	CHECK_EQ(at, all);
}

/* The samples at these positions, in order, or packed in any. */
static void check_ids(const struct rule *r, const struct epoch *e,
		      const struct batch *want, const struct pen_batch *b)
{
	uint32_t need[N] = { 0 };

	for (uint32_t i = 0; i < want->n; i++) {
		const uint64_t id = e->id[(want->first + i) % N];
		const uint32_t len = e->len[(want->first + i) % N];
		const bool split = r->split && len > r->pack;

		need[id] += split ? (len - 1) / r->pack + 1 : 1;
	}
	for (uint32_t i = 0; i < b->nsamples; i++)
		if (r->pack)
			CHECK(need[b->ids[i]]-- > 0);
		else
			CHECK_EQ(b->ids[i], e->id[(want->first + i) % N]);
	for (uint32_t i = 0; r->pack && i < N; i++)
		CHECK_EQ(need[i], 0);
	if (!r->pack)
		CHECK_EQ(b->nsamples, want->n);
}

struct way {
	const struct set *s;
	const struct rule *r;
	const char *how, *tail;
	struct epoch *e; /* two of them */
	unsigned world;
};

/* The rest of an epoch from a position on, and its end. */
static void check_rest(const struct way *w, struct pen_loader *l, unsigned rank,
		       unsigned epoch, uint64_t pos)
{
	struct batch want[2 * N];
	const uint32_t n =
		expect(w->r, &w->e[epoch], w->tail, pos, rank, w->world, want);
	struct pen_state st;
	struct pen_batch *b;

	for (uint32_t i = 0; i < n; i++) {
		if (!CHECK_EQ(pen_loader_next(l, &b, NULL), 0))
			return;
		CHECK_EQ(b->epoch, epoch);
		CHECK_EQ(b->position, want[i].first);
		CHECK_EQ(b->end, want[i].end);
		check_ids(w->r, &w->e[epoch], &want[i], b);
		if (w->r->pack)
			check_packed(w->s, w->r, b);
		else
			check_rows(w->s, w->r, b);
		pen_loader_state(l, &st);
		CHECK_EQ(st.position, want[i].end);
		pen_batch_unref(b);
	}
	CHECK_EQ(pen_loader_next(l, &b, NULL), PEN_END);
}

static struct pen_loader *open_way(const struct way *w, unsigned rank,
				   unsigned threads, unsigned epochs)
{
	struct pen_err err;
	struct pen_loader *l = eng_open(
		&err, "%s %s %s tail=%s world=%u rank=%u threads=%u epochs=%u",
		w->s->name, w->s->read, w->how, w->tail, w->world, rank,
		threads, epochs);

	if (!CHECK(l != NULL))
		fprintf(stderr, "  %s: %s: %s\n", w->how, err.where, err.msg);
	return l;
}

static void check_way(const struct way *w)
{
	struct batch want[2 * N];

	for (unsigned rank = 0; rank < w->world; rank++) {
		struct pen_loader *l = open_way(w, rank, 1 + rank % 3, 2);

		for (unsigned e = 0; l && e < 2; e++) {
			const uint32_t n = expect(w->r, &w->e[e], w->tail, 0,
						  rank, w->world, want);

			CHECK_EQ(pen_loader_nbatches(l), n);
			check_rest(w, l, rank, e, 0);
		}
		pen_loader_close(l);
	}
}

/* A state of every step of the first epoch, on different numbers of ranks in
 * turn. */
static void check_resume(const struct way *from)
{
	struct batch want[2 * N];
	const uint32_t n =
		expect(from->r, from->e, from->tail, 0, 0, from->world, want);
	struct pen_loader *l[5];
	struct pen_state st;

	for (unsigned k = 0; k < 5; k++) {
		struct way to = *from;

		to.world = k + 1;
		l[k] = open_way(&to, k / 2, 1 + k % 2, 2);
		if (!l[k])
			return;
	}
	pen_loader_state(l[0], &st);
	for (uint32_t i = 0; i < n; i += TEST_EVERY(3)) {
		const unsigned k = i % 5;
		struct way to = *from;

		to.world = k + 1;
		st.position = want[i].end;
		CHECK_EQ(pen_loader_restore(l[k], &st, NULL), 0);
		check_rest(&to, l[k], k / 2, 0, st.position);
		if (i % 4 == 0)
			check_rest(&to, l[k], k / 2, 1, 0);
	}
	for (unsigned k = 0; k < 5; k++)
		pen_loader_close(l[k]);
}

static void test_rules(const struct set *s, const struct rule *r,
		       const char *layout, bool resume)
{
	static const char *const tails[] = { "keep", "drop", "pad" };
	static struct epoch e[2];
	char how[256];

	snprintf(how, sizeof(how), "sampler=shuffle seed=5 %s", layout);
	for (unsigned i = 0; i < 2; i++)
		order_of(s, "sampler=shuffle seed=5", i, &e[i]);
	for (unsigned world = 1; world <= 5; world++)
		for (unsigned t = 0; t < 3; t++) {
			struct way w = { s, r, how, tails[t], e, world };

			if (resume ? (world + t) % TEST_EVERY(2) == 0
				   : world % 3 == t)
				check_way(&w);
			if (resume && (world == 1 || world == t + 2))
				check_resume(&w);
		}
}

static void test_tokens(void)
{
	static const struct rule sum = { .tokens = 100,
					 .multiple = 1,
					 .most = 100 };
	static const struct rule few = { .tokens = 100,
					 .multiple = 1,
					 .most = 4 };
	static const struct rule padded = {
		.tokens = 120, .multiple = 1, .most = 120, .padded = true
	};
	static const struct rule eight = {
		.tokens = 160, .multiple = 8, .most = 20, .padded = true
	};
	/* most samples are longer */
	static const struct rule alone = { .tokens = 25,
					   .multiple = 1,
					   .most = 25 };

	for (size_t i = 0; i < NSETS; i++) {
		test_rules(&sets[i], &sum, "batch_tokens=100", i == 0);
		test_rules(&sets[i], &padded, "batch_tokens=120 shapes=padded",
			   i == 1);
	}
	test_rules(&sets[0], &alone, "batch_tokens=25", true);
	test_rules(&sets[1], &few, "batch_tokens=100 batch_size=4", false);
	test_rules(&sets[2], &eight,
		   "batch_tokens=160 shapes=padded pad_multiple=8", false);
}

static void test_pack(void)
{
	static const struct rule whole = { .tokens = 256,
					   .multiple = 1,
					   .most = 10000,
					   .rows = 4,
					   .pack = 64 };
	static const struct rule cut = { .tokens = 90,
					 .multiple = 1,
					 .most = 10000,
					 .rows = 6,
					 .pack = 15 };
	static const struct rule split = { .tokens = 90,
					   .multiple = 1,
					   .most = 10000,
					   .rows = 6,
					   .pack = 15,
					   .split = true };

	for (size_t i = 0; i < NSETS; i++)
		test_rules(&sets[i], &whole, "pack=64 batch_size=4", i == 0);
	for (size_t i = 0; i < NSETS; i += 2)
		test_rules(&sets[i], &cut, "pack=15 batch_size=6 too_long=cut",
			   false);
	for (size_t i = 1; i < NSETS; i += 2)
		test_rules(&sets[i], &split,
			   "pack=15 batch_size=6 too_long=split", i == 1);
}

/* ---- batches of similar length ---- */

/* Every sample once per epoch over all ranks; returns the cost of padding. */
static uint64_t padding_of(const char *how, unsigned world)
{
	const struct set *s = &sets[1];
	uint64_t took = 0;
	uint32_t seen[N] = { 0 };

	for (unsigned rank = 0; rank < world; rank++) {
		struct pen_err err;
		struct pen_loader *l =
			eng_open(&err, "%s %s %s tail=keep world=%u rank=%u",
				 s->name, s->read, how, world, rank);
		const struct rule r = { .padded = true, .multiple = 1 };
		struct pen_batch *b;
		uint64_t n = 0, all;

		if (!CHECK(l != NULL)) {
			fprintf(stderr, "  %s: %s\n", err.where, err.msg);
			continue;
		}
		all = pen_loader_nbatches(l);
		for (; pen_loader_next(l, &b, NULL) == 0; n++) {
			if (strstr(how, "padded"))
				check_rows(s, &r, b);
			for (uint32_t i = 0; i < b->nsamples; i++)
				seen[b->ids[i]]++;
			took += b->tensors[0].nbytes;
			pen_batch_unref(b);
		}
		if (strstr(how, "tokens"))
			CHECK_EQ(all, n);
		pen_loader_close(l);
	}
	for (uint32_t i = 0; i < N; i++)
		CHECK_EQ(seen[i], 1);
	return took;
}

static void test_bucket(void)
{
	const uint64_t plain = padding_of("sampler=shuffle shapes=padded "
					  "batch_size=4 pad_to=batch",
					  1);

	for (unsigned world = 1; world <= 5; world++) {
		const uint64_t sorted = padding_of(
			"sampler=bucket shapes=padded batch_size=4", world);

		CHECK(world > 1 || sorted * 10 < plain * 8);
		padding_of("sampler=bucket batch_tokens=120", world);
		padding_of("sampler=bucket shapes=padded batch_tokens=120 "
			   "sampler.window=4 sampler.together=2",
			   world);
		padding_of("sampler=bucket pack=64 batch_size=3", world);
	}
}

/* A subset: the lengths are those of its samples. */
static void test_subset(const char *how)
{
	const struct set *s = &sets[1];
	const struct rule r = { .rows = 4, .pack = 64, .multiple = 1 };
	struct pen_loader *l =
		eng_open(NULL, "%s %s sampler=shuffle subset=4:50:3 %s",
			 s->name, s->read, how);
	struct pen_batch *b;
	uint32_t n = 0;

	while (l && pen_loader_next(l, &b, NULL) == 0) {
		uint32_t sum = 0;

		for (uint32_t i = 0; i < b->nsamples; i++) {
			CHECK(b->ids[i] >= 4 && b->ids[i] % 3 == 1);
			sum += length_of(s, b->ids[i]);
		}
		if (strstr(how, "pack")) {
			check_packed(s, &r, b);
		} else {
			check_rows(s, &r, b);
			CHECK(sum <= 100);
		}
		n += b->nsamples;
		pen_batch_unref(b);
	}
	CHECK_EQ(n, 16);
	pen_loader_close(l);
}

/* Lengths from a file: batches follow these lengths, not the shapes. */
static void test_lengths(void)
{
	const struct set *s = &sets[0];
	double v[N];
	struct pen_loader *l;
	struct pen_batch *b;
	struct pen_err err;

	for (uint32_t i = 0; i < N; i++)
		v[i] = i % 2 ? 10 : 30;
	eng_numbers("lengths.npy", PEN_I64, v, N);
	l = eng_open(&err, "%s %s batch_tokens=100 lengths=lengths.npy",
		     s->name, s->read);
	if (CHECK(l && !pen_loader_next(l, &b, NULL))) {
		CHECK_EQ(b->nsamples, 4); /* 30 10 30 10, and 30 is too much */
		pen_batch_unref(b);
	}
	pen_loader_close(l);
	v[3] = -1;
	eng_numbers("lengths.npy", PEN_F64, v, N);
	l = eng_open(&err, "%s %s batch_tokens=100 lengths=lengths.npy",
		     s->name, s->read);
	CHECK(!l && strstr(err.msg, "sample 3 has the length -1"));
}

/* ---- errors ---- */

/* A byte of its list, which is stored before the second member. */
static void damage(const char *path)
{
	static uint8_t p[65536];
	FILE *f = fopen(path, "r+b");
	size_t n = f ? fread(p, 1, sizeof(p), f) : 0, at = 4;

	while (at + 4 < n && memcmp(p + at, "PK\3\4", 4) != 0)
		at++;
	if (!CHECK(f && at > 10 && at + 4 < n))
		return;
	p[at - 6] ^= 0x55;
	CHECK_EQ(fseek(f, 0, SEEK_SET), 0);
	CHECK_EQ(fwrite(p, 1, n, f), n);
	fclose(f);
}

/* A sample that cannot be read leaves padding behind. */
static void test_skip(const char *how)
{
	const struct rule r = { .rows = 4, .pack = 64 };
	const struct set *s = &sets[1];
	struct pen_loader *l;
	struct pen_batch *b;
	uint32_t n = 0, skipped = 0;

	l = eng_open(NULL, "%s %s pack=64 batch_size=4 on_error=%s", s->name,
		     s->read, how);
	while (l && pen_loader_next(l, &b, NULL) == 0) {
		check_packed(s, &r, b);
		n += b->nsamples;
		skipped += b->nskipped;
		for (uint32_t i = 0; i < b->nsamples; i++)
			CHECK(b->ids[i] != 3 && b->ids[i] != 14);
		pen_batch_unref(b);
	}
	CHECK_EQ(skipped, 2);
	CHECK_EQ(n, N - 2);
	pen_loader_close(l);
}

static void refused(const char *how, const char *where, const char *msg)
{
	struct pen_err err;
	struct pen_loader *l =
		eng_open(&err, "npz format.samples=file %s", how);

	CHECK(!l);
	CHECK_STR(err.where, where);
	if (!CHECK(strstr(err.msg, msg) != NULL))
		fprintf(stderr, "  %s\n", err.msg);
	pen_loader_close(l);
}

static void test_refused(void)
{
	refused("pack=64 batch_tokens=5", "batch_tokens", "with pack=;");
	refused("pack=64 epoch_batches=5", "epoch_batches", "differ in size");
	refused("pack=64 batch_group=5", "batch_group", "differ in size");
	refused("pack=64 too_long=alone", "too_long", "cut, split or fail");
	refused("batch_tokens=64 too_long=cut", "too_long", "alone or fail");
	refused("batch_tokens=30 too_long=fail", "batch_tokens", "tokens");
	refused("pack=30", "pack", "too_long=cut or split");
	refused("pack=3 batch_size=5 too_long=split", "pack", "batch_size=");
	refused("pack=64 take=4", "pack", "take=");
	refused("pack=64 fields=y", "pack", "list of numbers");
	refused("batch_tokens=64 fields=y", "lengths", "lengths=field:");
}

/* Every allocation fails once: reported, and nothing leaks. */
static void test_no_memory(const char *how)
{
	uint64_t n = 1;
	int rc;

	do {
		struct pen_loader *l = NULL;
		struct pen_spec *spec = NULL;
		struct pen_err err = { 0 };
		char text[256];

		snprintf(text, sizeof(text),
			 "npz format.samples=file sampler=bucket threads=1 %s",
			 how);
		CHECK_EQ(eng_spec(&spec, text, NULL), 0);
		pen__mem_fail_nth(n, false);
		rc = pen_loader_open(&l, spec, &err);
		if (!rc)
			rc = eng_run(l, 1, NULL, &err);
		/* EIO: a thread could not be started */
		if (!CHECK(rc == PEN_END || rc == PEN_ENOMEM || rc == PEN_EIO))
			fprintf(stderr, "  %d: %s: %s\n", rc, err.where,
				err.msg);
		n = rc == PEN_END && pen__mem_count() < n ? 0 : n + 7;
		pen__mem_fail_nth(0, false);
		pen_loader_close(l);
		pen_spec_free(spec);
	} while (n);
}

/* ---- lists from shared chunks, two of them per sample ---- */

static void make_cells(void)
{
	const struct pen_synth_cells_setup s = { .seed = 3,
						 .ncells = 300,
						 .ngenes = 120,
						 .density = 0.1,
						 .overlap = 1,
						 .dtype = PEN_F32 };
	const struct pen_opts_kv kv = { "compression", "gzip" };
	struct pen_synth_cells_run run = { .format = pen__cells_format_for(
						   "c.h5ad"),
					   .kv = &kv,
					   .nkv = 1,
					   .path = "c.h5ad",
					   .threads = 1 };
	struct pen_synth_cells *c = NULL;

	if (!CHECK(run.format))
		return;
	CHECK_EQ(pen__synth_cells_new(&c, &s, NULL), 0);
	CHECK_EQ(pen__synth_cells_write(c, &run, NULL), 0);
	pen__synth_cells_free(c);
}

struct cells {
	int64_t n[300];
	uint64_t hash[300];
	uint32_t seen[300];
};

/* The parts of each cell that came, over all ranks; pieces of one add up. */
static void load_cells(const char *how, unsigned world, struct cells *c)
{
	*c = (struct cells){ .n = { 0 } };
	for (unsigned rank = 0; rank < world; rank++) {
		struct pen_err err;
		struct pen_loader *l = eng_open(
			&err,
			"c.h5ad format.output=csr world=%u rank=%u tail=keep "
			"%s threads=2",
			world, rank, how);
		struct pen_batch *b;
		int rc = -1;

		if (!CHECK(l != NULL))
			fprintf(stderr, "  %s: %s\n", err.where, err.msg);
		while (l && (rc = pen_loader_next(l, &b, &err)) == 0) {
			for (uint32_t i = 0; i < b->nsamples; i++) {
				const struct pen_tensor *x = &b->tensors[0];
				const struct pen_tensor *k = &b->tensors[1];
				const uint64_t id = b->ids[i];

				c->seen[id]++;
				c->n[id] += x->shapes[i];
				for (int64_t j = 0; j < x->shapes[i]; j++) {
					size_t at = (size_t)(x->offsets[i] + j);

					c->hash[id] += pen__mix64(
						(uint64_t)number(k, at) * 999 +
						(uint64_t)number(x, at));
				}
			}
			pen_batch_unref(b);
		}
		if (!CHECK_EQ(rc, PEN_END))
			fprintf(stderr, "  %s: %s\n", err.where, err.msg);
		pen_loader_close(l);
	}
}

static void test_cells(void)
{
	static const char *const ways[] = {
		"sampler=block sampler.chunk=8 sampler.chunks=6 "
		"batch_tokens=200",
		"sampler=block sampler.chunk=8 sampler.chunks=6 pack=40 "
		"batch_size=7",
		"sampler=shuffle pack=9 batch_size=20 too_long=split",
		"sampler=bucket batch_tokens=150 memory=2MiB",
	};
	static struct cells want, got;

	load_cells("batch_size=10", 1, &want);
	for (size_t i = 0; i < 4; i++)
		for (unsigned world = 1; world <= 4; world++) {
			load_cells(ways[i], world, &got);
			CHECK(!memcmp(got.n, want.n, sizeof(got.n)));
			CHECK(!memcmp(got.hash, want.hash, sizeof(got.hash)));
			for (unsigned k = 0; i != 2 && k < 300; k++)
				CHECK_EQ(got.seen[k], 1);
		}
}

/* One sample is left for six ranks: five of them count one batch less. */
static void test_short_tail(void)
{
	uint64_t all = 0;

	for (unsigned rank = 0; rank < 6; rank++) {
		struct pen_loader *l =
			eng_open(NULL,
				 "npy format.samples=file batch_size=10 "
				 "tail=keep world=6 rank=%u",
				 rank);
		struct pen_batch *b;
		uint64_t n = 0;

		if (!CHECK(l))
			return;
		for (; !pen_loader_next(l, &b, NULL); n++)
			pen_batch_unref(b);
		CHECK_EQ(pen_loader_nbatches(l), n);
		all += n;
		pen_loader_close(l);
	}
	CHECK_EQ(all, 7);
}

int main(void)
{
	eng_start("test_batching");
	for (size_t i = 0; i < NSETS; i++)
		make(&sets[i]);
	make_cells();
	test_tokens();
	test_pack();
	test_bucket();
	test_short_tail();
	test_subset("batch_tokens=100");
	test_subset("pack=64 batch_size=4");
	test_lengths();
	test_refused();
	test_no_memory("pack=64 batch_size=4");
	test_no_memory("batch_tokens=90");
	test_cells();
	damage("npz/f003.npz");
	damage("npz/f014.npz");
	test_skip("skip");
	test_skip("substitute");
	eng_end();
	return test_end();
}
