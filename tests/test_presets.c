/*
 * The samplers that are the block shuffle under other names: their sizes, that
 * these can be set, and what Census' shuffle promises, for any number of ranks.
 */
#include "engine.h"

#include "sampler/sampler.h"

static struct pen_sampler *open_one(const char *name, uint64_t n,
				    uint32_t batch,
				    const struct pen_opts_kv *kv, size_t nkv)
{
	const struct pen_population pop = { .n = n, .batch = batch };
	struct pen_sampler *s = NULL;
	struct pen_err err = { 0 };

	if (!CHECK(!pen__sampler_open(&s, name, &pop, 3,
				      (struct pen_opts){ kv, nkv }, &err))) {
		fprintf(stderr, "%s: %s\n", err.where, err.msg);
		exit(1);
	}
	return s;
}

/* The same order as the block sampler with these sizes. */
static void is_block(const char *name, uint32_t batch, const char *chunk,
		     const char *chunks, const struct pen_opts_kv *kv,
		     size_t nkv)
{
	enum { N = 300000, AT = 123456 };
	const struct pen_opts_kv same[] = { { "chunk", chunk },
					    { "chunks", chunks } };
	struct pen_sampler *s = open_one(name, N, batch, kv, nkv);
	struct pen_sampler *t = open_one("block", N, 0, same, 2);
	uint64_t a[1000], b[1000];

	CHECK_EQ(s->chunk, t->chunk);
	CHECK_EQ(s->window, t->window);
	for (uint64_t epoch = 0; epoch < 2; epoch++) {
		CHECK_EQ(s->ops->ids(s, epoch, AT, 1000, a, NULL), 0);
		CHECK_EQ(t->ops->ids(t, epoch, AT, 1000, b, NULL), 0);
		CHECK(!memcmp(a, b, sizeof(a)));
		CHECK_EQ(s->ops->window_end(s, epoch, AT),
			 t->ops->window_end(t, epoch, AT));
	}
	pen__sampler_close(s);
	pen__sampler_close(t);
}

static void sizes(void)
{
	static const struct pen_opts_kv chunk = { "chunk", "32" };
	static const struct pen_opts_kv fetch = { "fetch", "10" };
	static const struct pen_opts_kv chunks = { "chunks", "77" };

	is_block("census", 7, "64", "2000", NULL, 0);
	is_block("census", 7, "32", "2000", &chunk, 1);
	is_block("census", 7, "64", "77", &chunks, 1);
	is_block("annbatch", 7, "512", "32", NULL, 0);
	is_block("annbatch", 7, "512", "77", &chunks, 1);
	is_block("scdataset", 64, "16", "1024", NULL, 0);
	is_block("scdataset", 64, "32", "512", &chunk, 1);
	is_block("scdataset", 64, "16", "40", &fetch, 1);
	is_block("scdataset", 64, "16", "77", &chunks, 1);
	is_block("scdataset", 63, "16", "1008", NULL, 0);
	is_block("scdataset", 3, "16", "2", &fetch, 1); /* 30 samples */
	is_block("scdataset", 0, "16", "16", NULL, 0);	/* nobody knows: 1 */
	is_block("scdataset", UINT32_MAX, "16", "18750", NULL, 0);
}

/* ---- ranks ---- */

#define SET                                                                    \
	"null: store=null format=synthetic format.samples=203 format.shape=1 " \
	"sampler=census sampler.chunk=4 sampler.chunks=7 seed=9 epochs=2"
enum { N = 203, CHUNK = 4, WINDOW = 28, EPOCHS = 2 };

/* Every rank's ids at their global positions. */
static void collect(unsigned world, unsigned batch, uint64_t (*out)[N])
{
	memset(out, 0xff, EPOCHS * sizeof(*out));
	for (unsigned rank = 0; rank < world; rank++) {
		struct pen_loader *l;
		struct pen_batch *b;
		unsigned thirds = 0;
		int rc;

		l = eng_open(NULL,
			     SET " batch_size=%u world=%u rank=%u tail=keep "
				 "threads=%u",
			     batch, world, rank, 1 + rank);
		if (!CHECK(l != NULL))
			exit(1);
		while ((rc = pen_loader_next(l, &b, NULL)) >= 0 && !l->ended) {
			for (uint32_t i = 0; !rc && i < b->nsamples; i++) {
				out[b->epoch][b->position + i] = b->ids[i];
				thirds |= 1u << (b->ids[i] / 70);
			}
			if (!rc)
				pen_batch_unref(b);
		}
		/* not a range of its own: data in runs reaches all ranks */
		CHECK_EQ(thirds, 7);
		pen_loader_close(l);
	}
}

/* Windows hold whole chunks, one of which may be short, and batches do not
 * end where they do. */
static void whole_chunks(const uint64_t *ids)
{
	unsigned seen[N / CHUNK + 1] = { 0 }, moved = 0;
	uint64_t at = 0;
	struct pen_opts_kv kv[] = { { "chunk", "4" }, { "chunks", "7" } };
	const struct pen_population pop = { .n = N };
	struct pen_sampler *s;

	CHECK_EQ(pen__sampler_open(&s, "block", &pop, 9,
				   (struct pen_opts){ kv, 2 }, NULL),
		 0);
	while (at < N) {
		const uint64_t end = s->ops->window_end(s, 0, at);
		unsigned used[N / CHUNK + 1] = { 0 };

		CHECK(end > at && end <= at + WINDOW && end <= N);
		moved += end % 12 != 0;
		for (; at < end; at++)
			used[ids[at] / CHUNK]++;
		for (unsigned c = 0; c <= N / CHUNK; c++) {
			CHECK(!used[c] || !seen[c]);
			CHECK(!used[c] ||
			      used[c] == (c < N / CHUNK ? CHUNK : N % CHUNK));
			seen[c] |= used[c];
		}
	}
	CHECK(moved > 3);
	pen__sampler_close(s);
}

static void ranks(void)
{
	static const unsigned split[][2] = { { 1, 12 }, { 2, 6 }, { 3, 4 },
					     { 1, 5 },	{ 2, 7 }, { 3, 50 } };
	uint64_t one[EPOCHS][N], many[EPOCHS][N];
	unsigned same = 0;

	collect(1, 12, one);
	for (size_t i = 0; i < sizeof(split) / sizeof(*split); i++) {
		collect(split[i][0], split[i][1], many);
		CHECK(!memcmp(one, many, sizeof(one)));
	}
	for (unsigned e = 0; e < EPOCHS; e++) {
		bool seen[N] = { false };

		for (unsigned i = 0; i < N; i++) {
			CHECK(one[e][i] < N && !seen[one[e][i]]);
			if (one[e][i] < N)
				seen[one[e][i]] = true;
		}
	}
	for (unsigned i = 0; i < N; i++)
		same += one[0][i] == one[1][i];
	CHECK(same < 15); /* the epoch is mixed into the seed */
	whole_chunks(one[0]);
}

/* A window that follows from the batch size: another size is another order. */
static void states(void)
{
	struct pen_loader *l[3];
	struct pen_state st;
	struct pen_err err;

	l[0] = eng_open(NULL, "null: store=null format=synthetic "
			      "format.samples=9000 format.shape=1 "
			      "sampler=scdataset sampler.fetch=4 "
			      "batch_size=64");
	l[1] = eng_open(NULL, "null: store=null format=synthetic "
			      "format.samples=9000 format.shape=1 "
			      "sampler=scdataset sampler.fetch=4 "
			      "batch_size=32");
	l[2] = eng_open(NULL, "null: store=null format=synthetic "
			      "format.samples=9000 format.shape=1 "
			      "sampler=scdataset sampler.fetch=4 "
			      "batch_size=64 world=2");
	if (!CHECK(l[0] && l[1] && l[2]))
		return;
	pen_loader_state(l[0], &st);
	CHECK_EQ(pen_loader_restore(l[1], &st, &err), PEN_EINVAL);
	CHECK_EQ(pen_loader_restore(l[2], &st, &err), 0);
	for (int i = 0; i < 3; i++)
		pen_loader_close(l[i]);
}

int main(void)
{
	sizes();
	ranks();
	states();
	return test_end();
}
