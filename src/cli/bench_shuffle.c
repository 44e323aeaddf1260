/*
 * bench shuffle: what an order costs and what it is worth: none, a copy that
 * was shuffled beforehand and is read in order, blocks, and all over. All are
 * judged by the same neighbours, by the number a sample had in the data as
 * given: a copy that is read in order is well mixed, but the same every epoch.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/arms.h"
#include "engine/loader.h"
#include "engine/spec.h"
#include "engine/synth.h"

enum { NONE, COPY, BLOCK, GLOBAL, NORDERS };
static const char *const orders[] = { "none", "pre-shuffled", "block",
				      "global" };
static const char *const samplers[] = { "sequential", "sequential", "block",
					"shuffle" };

struct shuffle {
	struct arms a;
	char chunk[24], chunks[24];
	bool order[NORDERS];
	const char *label;
	/* the copy */
	char raw[4096], ids[4096], dtype[32], shape[256];
	double copy_s;
};

static const struct flag flags[] = {
	{ "-s", "ORDER",
	  "none, pre-shuffled, block or global; repeatable, default all" },
	{ "--chunk", "N",
	  "samples a chunk, for block and for judging all (default 64)" },
	{ "--chunks", "N", "chunks a block (default 256)" },
	{ "--label", "FIELD",
	  "also how evenly this label is mixed; not of a copy" },
	ARMS_FLAGS,
	{ NULL, NULL, NULL },
};

/* ---- the copy ---- */

static int put_all(int fd, const void *p, size_t n, const char *path,
		   struct pen_err *err)
{
	const uint8_t *b = p;

	while (n) {
		const ssize_t k = write(fd, b, n);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return pen__fail_sys(err, errno, path,
					     "cannot be written");
		b += k;
		n -= (size_t)k;
	}
	return 0;
}

static int copy_batches(const struct shuffle *g, struct pen_loader *l, int raw,
			int ids, struct pen_err *err)
{
	int rc;

	for (;;) {
		struct pen_batch *b;

		rc = pen_loader_next(l, &b, err);
		if (rc)
			break;
		rc = put_all(raw, b->tensors[0].data, b->tensors[0].nbytes,
			     g->raw, err);
		if (!rc)
			rc = put_all(ids, b->ids, b->nsamples * sizeof(*b->ids),
				     g->ids, err);
		pen_batch_unref(b);
		if (rc)
			break;
	}
	return rc == PEN_END ? 0 : rc;
}

static int copy_loaded(const struct shuffle *g, struct pen_loader *l,
		       struct pen_err *err)
{
	const struct pen_field *f = l->ds->format->field;
	const int raw = open(g->raw, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	const int ids = open(g->ids, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	int rc = pen__synth_space(g->a.folder, f->max_bytes * l->length, err);

	if (!rc && (raw < 0 || ids < 0))
		rc = pen__fail_sys(err, errno, g->a.folder,
				   "no copy can be made there");
	if (!rc)
		rc = copy_batches(g, l, raw, ids, err);
	if (raw >= 0)
		close(raw);
	if (ids >= 0)
		close(ids);
	return rc;
}

static void put_shape(struct pen_text *j, const struct pen_field *f)
{
	char shape[256] = "1";
	size_t at = 0;

	for (uint32_t i = 0; i < f->ndim && at < sizeof(shape); i++)
		at += (size_t)snprintf(shape + at, sizeof(shape) - at, "%s%lld",
				       i ? "x" : "", (long long)f->shape[i]);
	pen__json_str(j, "dtype", pen_dtype_name(f->dtype));
	pen__json_str(j, "shape", shape);
}

/* Settings would change the copy once more when it is read. */
static bool can_copy(const struct pen_loader *l, const struct pen_spec *s)
{
	return l->ds->format->nfields == 1 &&
	       l->ds->format->field[0].layout == PEN_DENSE && !s->subset &&
	       !s->cast && !s->take.n && s->world == 1 && s->decode &&
	       !s->epoch_batches && s->tail != PEN_TAIL_DROP && !s->drop_last &&
	       s->tail != PEN_TAIL_PAD;
}

static int copy_data(struct bench *b, const struct trial *t, struct pen_text *j,
		     struct pen_err *err)
{
	const struct setting set[] = { { "sampler", "shuffle" },
				       { "epochs", "1" } };
	const uint64_t start = pen__now_ns();
	struct pen_loader *l = NULL;
	struct pen_spec *s;
	int rc = arms_spec(b, set, 2, &s, err);

	if (rc)
		return rc;
	rc = pen_loader_open(&l, s, err);
	pen__json_open(j, NULL, '{');
	if (!rc && !can_copy(l, s)) {
		pen__json_str(j, "not",
			      "a copy is made of one dense field, whole and "
			      "unchanged");
	} else if (!rc) {
		put_shape(j, &l->ds->format->field[0]);
		rc = copy_loaded(t->arg, l, err);
	}
	pen__json_num(j, "seconds", (double)(pen__now_ns() - start) / 1e9);
	pen__json_close(j, '}');
	pen_loader_close(l);
	pen_spec_free(s);
	return rc;
}

/* EXIT code or -1; without a copy the arm is left out. */
static int make_copy(struct shuffle *g)
{
	const struct trial t = { .title = "shuffling a copy",
				 .run = copy_data,
				 .arg = g };
	struct pen_line row;
	int rc = arms_folder(&g->a);

	snprintf(g->raw, sizeof(g->raw), "%s/shuffled.raw", g->a.folder);
	snprintf(g->ids, sizeof(g->ids), "%s/shuffled.ids", g->a.folder);
	if (rc < 0)
		rc = trial_row(&g->a.b, &t, &row);
	if (rc >= 0)
		return rc;
	g->order[COPY] = !pen__line_text(&row, "not")[0];
	if (!g->order[COPY])
		fprintf(stderr, "penstock: pre-shuffled left out: %s\n",
			shown(pen__line_text(&row, "not")));
	snprintf(g->dtype, sizeof(g->dtype), "%s",
		 pen__line_text(&row, "dtype"));
	snprintf(g->shape, sizeof(g->shape), "%s",
		 pen__line_text(&row, "shape"));
	g->copy_s = pen__line_number(&row, "seconds");
	pen__line_fini(&row);
	return -1;
}

/* ---- one arm ---- */

static int use_copy(const struct shuffle *g, struct pen_spec *s,
		    struct pen_err *err)
{
	int rc = arms_path(s, g->raw, err);

	pen__pairs_clear(&s->for_format);
	if (!rc)
		rc = pen_spec_set(s, "format", "raw", err);
	if (!rc)
		rc = pen_spec_set(s, "format.dtype", g->dtype, err);
	if (!rc)
		rc = pen_spec_set(s, "format.shape", g->shape, err);
	return rc;
}

/* Mapped, so that it is not counted as the loader's memory. */
static int map_names(const struct shuffle *g, const uint64_t **out,
		     struct pen_err *err)
{
	const int fd = open(g->ids, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p = MAP_FAILED;

	if (fd >= 0 && !fstat(fd, &st) && st.st_size > 0)
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd,
			 0);
	if (fd >= 0)
		close(fd);
	if (p == MAP_FAILED)
		return pen__fail_sys(err, errno, g->ids, "cannot be read");
	*out = p;
	return 0;
}

static int run_arm(struct bench *b, const struct trial *t, struct pen_text *j,
		   struct pen_err *err)
{
	const struct arm *m = t->arg;
	const struct shuffle *g = (const struct shuffle *)(const void *)m->of;
	const struct setting set[] = { { "sampler", samplers[m->kind] },
				       { "sampler.chunk", g->chunk },
				       { "sampler.chunks", g->chunks } };
	struct pen_pass pass = { .max_batches = b->batches, .quality = true };
	struct pen_spec *s;
	int rc = arms_spec(b, set, m->kind == BLOCK ? 3 : 1, &s, err);

	if (rc)
		return rc;
	pass.spec = s;
	pass.label = m->kind == COPY ? NULL : g->label;
	pass.quality_chunk = strtoull(g->chunk, NULL, 10);
	if (m->kind == COPY)
		rc = use_copy(g, s, err);
	if (!rc && m->kind == COPY)
		rc = map_names(g, &pass.names, err);
	if (!rc)
		rc = arms_pass(b, t, &pass, j, err);
	if (!rc && m->kind == COPY)
		pen__json_num(j, "copy_s", g->copy_s);
	pen__pass_fini(&pass);
	pen_spec_free(s);
	return rc;
}

/* ---- all of them ---- */

static int prepare(struct arms *a)
{
	struct shuffle *g = (struct shuffle *)(void *)a;
	int rc = arms_open(a);

	arms_settle(g->order, NORDERS);
	if (rc < 0 && g->order[COPY])
		rc = make_copy(g);
	for (int i = 0; rc < 0 && i < NORDERS; i++) {
		struct arm *m;

		if (!g->order[i])
			continue;
		m = arms_add(&g->a, orders[i], "", (uint64_t)i);
		if (!m)
			return EXIT_FAILED;
		m->kind = i;
		/* a part of an epoch is another one in another order */
		if (g->a.b.batches)
			snprintf(m->check, sizeof(m->check), "%s", orders[i]);
		if (i == BLOCK)
			snprintf(m->group, sizeof(m->group), "%.20s x %.20s",
				 g->chunks, g->chunk);
	}
	return rc;
}

static int take_count(const struct args *arg, char buf[24])
{
	uint64_t v;

	if (pen__parse_count(arg->value, &v) || !v || v > (uint64_t)1 << 40)
		return complain_usage("bench shuffle: %s: '%s' does not do",
				      arg->key, arg->value);
	snprintf(buf, 24, "%llu", (unsigned long long)v);
	return -1;
}

static int take_arg(struct arms *a, struct args *arg, int kind)
{
	struct shuffle *g = (struct shuffle *)(void *)a;

	if (kind == ARG_FLAG && !strcmp(arg->key, "-s"))
		return arms_choose(arg, orders, g->order, NORDERS);
	if (kind == ARG_FLAG && !strcmp(arg->key, "--chunk"))
		return take_count(arg, g->chunk);
	if (kind == ARG_FLAG && !strcmp(arg->key, "--chunks"))
		return take_count(arg, g->chunks);
	if (kind == ARG_FLAG && !strcmp(arg->key, "--label")) {
		g->label = arg->value;
		return -1;
	}
	return arms_arg(a, arg, kind);
}

static int run_shuffle(int argc, char **argv)
{
	/* two epochs: what stays the same from one to the next shows */
	struct shuffle g = { .a = { .cmd = &pen__bench_shuffle,
				    .kind = &pen__kind_shuffle,
				    .preset = { "epochs", "2" },
				    .take = take_arg,
				    .prepare = prepare,
				    .run = run_arm },
			     .chunk = "64",
			     .chunks = "256" };

	return arms_main(&g.a, argc, argv);
}

static const char *const examples[] = {
	"penstock bench shuffle x.npy batch_size=256",
	"no shuffle, a shuffled copy, 256 chunks of 64, and all over",
	"penstock bench shuffle x.npy -s block -s global --chunk 16 --cold",
	"two of them, from the disk",
	"penstock bench shuffle --samples 100k --shape 256 epochs=3",
	"on data made for it",
	NULL,
};

const struct command pen__bench_shuffle = {
	.name = "bench shuffle",
	.args = "[PATH] [key=value ...] [flags]",
	.summary = "orders against speed, memory and how well they mix",
	.about = "none: in the order of the data. pre-shuffled: a copy in "
		 "random order (raw records, in --dir), read in order; only of "
		 "data with one dense field. block: chunks of neighbours, "
		 "mixed within blocks. global: all over. n_eff is how many "
		 "samples from all over a batch is worth when neighbours "
		 "(--chunk) are alike; `kept` is the share of neighbours in "
		 "the order that were neighbours in the epoch before.",
	.flags = flags,
	.takes_spec = true,
	.examples = examples,
	.run = run_shuffle,
};
