/*
 * Settings drawn at random, over several formats: for any threads, memory,
 * store, ranks and kept batches, the order is that of a single thread, and
 * every row is that of a plain pass. STRESS=N in the environment draws N times,
 * SEED=N others.
 */
#include "engine.h"
#include "make/maker.h"
#include "make/synth_cells.h"

enum { MOST = 1000, KEPT = 24 };

static struct pen_rng rng;
static unsigned one_of;

static const char *pick_of(const char *const *v)
{
	unsigned n = 0;

	while (v[n])
		n++;
	return v[pen__rng_below(&rng, n)];
}
#define PICK(...) pick_of((const char *const[]){ __VA_ARGS__, NULL })

static uint64_t mixed(uint64_t h, const void *p, size_t n)
{
	const uint8_t *at = p;

	for (size_t i = 0; i < n; i++)
		h = (h ^ at[i]) * 0x100000001b3u;
	return pen__mix64(h ^ n);
}

static uint64_t row_hash(const struct pen_batch *b, uint32_t r)
{
	uint64_t h = 1;

	for (uint32_t i = 0; i < b->ntensors; i++) {
		const struct pen_tensor *t = &b->tensors[i];
		size_t size = t->nbytes / b->nsamples;
		const uint8_t *p = (const uint8_t *)t->data + r * size;

		if (strcmp(t->name, "y") == 0)
			continue; /* the label, which only some loaders have */
		if (t->offsets) {
			const size_t item = pen_dtype_size(t->dtype);

			p = (const uint8_t *)t->data +
			    (size_t)t->offsets[r] * item;
			size = (size_t)(t->offsets[r + 1] - t->offsets[r]) *
			       item;
		}
		h = mixed(h, t->name, strlen(t->name));
		h = mixed(h, p, size);
	}
	return h;
}

static uint64_t want[MOST], nwant;

static uint64_t batch_hash(uint64_t h, const struct pen_batch *b)
{
	h = mixed(h, &b->epoch, 8);
	h = mixed(h, &b->position, 8);
	return mixed(h, b->ids, b->nsamples * sizeof(*b->ids));
}

static bool rows_right(const struct pen_batch *b)
{
	for (uint32_t r = 0; r < b->nsamples; r++)
		if (b->ids[r] >= nwant || want[b->ids[r]] != row_hash(b, r))
			return false;
	return true;
}

/* All rows by their number, read sequentially by one thread. */
static bool learn(const char *data)
{
	struct pen_err err;
	struct pen_loader *l = eng_open(&err, "%s threads=1 store=posix", data);
	struct pen_batch *b;

	nwant = 0;
	while (l && !pen_loader_next(l, &b, &err)) {
		for (uint32_t r = 0; r < b->nsamples && nwant < MOST; r++)
			want[nwant++] = row_hash(b, r);
		pen_batch_unref(b);
	}
	pen_loader_close(l);
	return CHECK(nwant > 0 && nwant < MOST);
}

/* Checks the order and all rows. Keeps some batches for a while, and seeks back
 * once. */
static uint64_t order_of(struct pen_loader *l, unsigned keep, int64_t back,
			 int *rc)
{
	struct pen_batch *kept[KEPT] = { NULL }, *b;
	struct pen_state st;
	struct pen_err err = { 0 };
	uint64_t h = 0;
	unsigned at = 0;

	do {
		if (back-- == 0) {
			pen_loader_state(l, &st);
			CHECK_EQ(pen_loader_restore(l, &st, &err), 0);
		}
		*rc = at % 3 ? pen_loader_next(l, &b, &err)
			     : pen_loader_next_within(l, 1000, &b, &err);
		if (*rc == PEN_END)
			h = mixed(h, "end", 3);
		if (*rc)
			continue;
		h = batch_hash(h, b);
		CHECK(rows_right(b));
		at++;
		pen_batch_unref(kept[at % KEPT]);
		kept[at % KEPT] = b;
		if (keep < KEPT) {
			pen_batch_unref(kept[(at + KEPT - keep) % KEPT]);
			kept[(at + KEPT - keep) % KEPT] = NULL;
		}
	} while (*rc >= 0 && !l->ended);
	for (unsigned i = 0; i < KEPT; i++)
		pen_batch_unref(kept[i]);
	if (*rc < 0 && *rc != PEN_ENOMEM)
		fprintf(stderr, "%s: %s\n", err.where, err.msg);
	return h;
}

static void draw_order(char *buf, size_t cap, bool cells)
{
	const char *sampler =
		PICK("sampler=sequential", "sampler=shuffle",
		     "sampler=block sampler.chunk=7 sampler.chunks=5",
		     "sampler=census sampler.chunk=16 sampler.chunks=8",
		     "sampler=scdataset sampler.fetch=4",
		     "sampler=annbatch sampler.chunk=32 sampler.chunks=3");
	const unsigned world = 1 + (unsigned)pen__rng_below(&rng, 3);

	if (cells && !pen__rng_below(&rng, 4))
		sampler = PICK("sampler=balanced labels=field:cell_type",
			       "sampler=balanced labels=field:cell_type "
			       "sampler.chunk=8 sampler.chunks=4",
			       "sampler=weighted weights=inverse:cell_type "
			       "sampler.chunk=8 sampler.chunks=16");
	snprintf(buf, cap,
		 "%s batch_size=%u tail=%s world=%u rank=%u epochs=%u "
		 "seed=%u %s %s",
		 sampler, 1 + (unsigned)pen__rng_below(&rng, 40),
		 PICK("auto", "keep", "drop", "pad"), world,
		 (unsigned)pen__rng_below(&rng, world),
		 1 + (unsigned)pen__rng_below(&rng, 3),
		 (unsigned)pen__rng_below(&rng, 100),
		 PICK("", "reshuffle=false", ""),
		 PICK("", "", "epoch_batches=3", "subset=10:200:3"));
}

static void draw_way(char *buf, size_t cap)
{
	const char *store = PICK("auto", "posix", "mmap", "uring");
	unsigned depth = 1 + (unsigned)pen__rng_below(&rng, 8);

	if (!strcmp(store, "uring") && !pen__store_uring_works())
		store = "posix";
	if (strcmp(store, "uring") != 0) /* the others have one read */
		depth = 0;
	snprintf(buf, cap,
		 "threads=%u prefetch=%u queue_depth=%u store=%s memory=%s %s "
		 "on_error=%s",
		 1 + (unsigned)pen__rng_below(&rng, 4),
		 (unsigned)pen__rng_below(&rng, 5), depth, store,
		 PICK("1500k", "3M", "20M", "200M"), PICK("", "", "cache=1M"),
		 PICK("fail", "skip", "substitute"));
}

static void try_once(const char *data, bool cells)
{
	char order[400], way[300];
	const unsigned keep =
		pen__rng_below(&rng, 2)
			? 1
			: (unsigned)pen__rng_below(&rng, KEPT) + 1;
	const int64_t back = (int64_t)pen__rng_below(&rng, 12) - 4;
	struct pen_loader *a, *b;
	struct pen_err err;
	uint64_t ha, hb;
	int rc;

	draw_order(order, sizeof(order), cells);
	draw_way(way, sizeof(way));
	if (getenv("STRESS"))
		fprintf(stderr, "%u: %s %s %s keep=%u back=%d\n", one_of, data,
			order, way, keep, (int)back);
	a = eng_open(&err, "%s %s threads=1 store=posix memory=400M", data,
		     order);
	/* dropped, nothing may be left */
	if (!a && strstr(order, "tail=drop") &&
	    !strcmp(err.where, "batch_size"))
		return;
	if (!CHECK(a))
		return;
	ha = order_of(a, 1, -1, &rc);
	CHECK_EQ(rc, PEN_END);
	pen_loader_close(a);
	b = eng_open(&err, "%s %s %s", data, order, way);
	if (!b) {
		CHECK_EQ(err.code, PEN_ENOMEM);
		return;
	}
	hb = order_of(b, keep, back, &rc);
	CHECK(rc == PEN_END || rc == PEN_ENOMEM);
	if (!CHECK(rc == PEN_ENOMEM || ha == hb))
		fprintf(stderr, "%s %s %s\n", data, order, way);
	pen_loader_close(b);
}

static void make_cells(const char *path, const char *packing)
{
	const struct pen_synth_cells_setup s = { .seed = 3,
						 .ncells = 600,
						 .ngenes = 200,
						 .density = 0.1,
						 .overlap = 1,
						 .dtype = PEN_F32 };
	const struct pen_opts_kv kv = { "compression", packing };
	struct pen_synth_cells_run run = { .format =
						   pen__cells_format_for(path),
					   .kv = &kv,
					   .nkv = 1,
					   .path = path,
					   .threads = 1 };
	struct pen_synth_cells *c = NULL;
	struct pen_err err;

	if (!CHECK(run.format))
		return;
	CHECK_EQ(pen__synth_cells_new(&c, &s, &err), 0);
	if (!CHECK_EQ(pen__synth_cells_write(c, &run, &err), 0))
		fprintf(stderr, "%s: %s\n", err.where, err.msg);
	pen__synth_cells_free(c);
}

int main(void)
{
	static const char *const cells[] = {
		"gzip.h5ad format.obs=cell_type",
		"none.h5ad format.obs=cell_type",
		"gzip.h5ad format.obs=cell_type format.output=csr",
		"gzip.h5ad format.obs=cell_type format.output=csr "
		"format.genes=first:20",
		"x.zarr format.obs=cell_type",
		"x.zarr format.obs=cell_type format.output=csr",
	};
	const size_t ncells = sizeof(cells) / sizeof(*cells);
	const char *times = getenv("STRESS"), *seed = getenv("SEED");
	unsigned n = times ? (unsigned)strtoul(times, NULL, 10) : 60;

	eng_start("stress");
	rng = pen__rng(seed ? strtoul(seed, NULL, 10) : 5, 1);
	eng_make(eng_find("npy_first"));
	eng_make(eng_find("npz_shared"));
	eng_make(eng_find("npz_ragged"));
	make_cells("gzip.h5ad", "gzip");
	make_cells("none.h5ad", "none");
	make_cells("x.zarr", "zstd");
	for (one_of = 0; one_of < n; one_of++) {
		const unsigned k = one_of % (unsigned)(ncells + 3);
		char data[200];

		if (k < ncells) {
			snprintf(data, sizeof(data), "%s", cells[k]);
		} else {
			const struct eng_set *s =
				eng_find((const char *const[]){
					"npy_first", "npz_shared",
					"npz_ragged" }[k - ncells]);

			snprintf(data, sizeof(data), "%s %s", s->name, s->read);
		}
		if (learn(data))
			try_once(data, k < ncells);
	}
	eng_end();
	return test_end();
}
