/*
 * gen, single cells: one file after another, each made by all threads, since
 * a file of cells is large and its writer takes rows in order.
 */
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/gen.h"
#include "make/synth.h"
#include "make/synth_cells.h"

#define CELLS 10000 /* per file by default */

struct run {
	struct gen *g;
	struct pen_opts_kv *kv;
	size_t nkv;
	uint64_t before; /* cells of earlier files */
	uint64_t numbers, bytes;
};

static int tick(void *arg, uint64_t nrows)
{
	struct run *r = arg;

	progress_show(&r->g->progress, r->before + nrows, 0);
	return interrupted();
}

static bool is_plain(const struct run *r)
{
	for (size_t i = 0; i < r->nkv; i++)
		if (!strcmp(r->kv[i].key, "compression"))
			return !strcmp(r->kv[i].value, "none");
	return !strcmp(r->g->cells, "h5ad");
}

static int make_dir(const char *path, struct pen_err *err)
{
	char dir[4096];
	char *slash;

	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	if (!slash || slash == dir)
		return 0;
	*slash = '\0';
	return pen__make_dirs(dir, 0777, true, err);
}

static int make_file(struct run *r, uint64_t i, struct pen_err *err)
{
	const struct gen *g = r->g;
	const struct pen_synth_cells_setup setup = {
		.seed = g->seed,
		.file = i,
		.ncells = g->samples,
		.ngenes = g->genes,
		.density = g->density,
		.overlap = g->overlap,
		.dtype = g->field[0].dtype,
		.npca = (uint32_t)g->pca,
		.dense = g->dense,
	};
	char path[4096];
	struct pen_synth_cells_run run = { .format = g->cells,
					   .kv = r->kv,
					   .nkv = r->nkv,
					   .path = path,
					   .threads = (unsigned)g->threads,
					   .tick = tick,
					   .arg = r };
	struct pen_synth_cells *c = NULL;
	int rc = pen__synth_cells_new(&c, &setup, err);

	gen_file_name(g, i, path, sizeof(path));
	/* the compression ratio is unknown; an eighth is a lower bound */
	if (!rc)
		rc = pen__synth_space(
			path, pen__synth_cells_bytes(c) / (is_plain(r) ? 1 : 8),
			err);
	if (!rc)
		rc = make_dir(path, err);
	if (!rc)
		rc = pen__synth_cells_write(c, &run, err);
	if (!rc) {
		r->before += g->samples;
		r->numbers += pen__synth_cells_numbers(c);
		r->bytes += pen__synth_cells_bytes(c);
	}
	pen__synth_cells_free(c);
	return rc;
}

static int report(const struct run *r, double s)
{
	const struct gen *g = r->g;
	struct pen_text j = { 0 };

	if (!g->json) {
		print_line(2, NULL,
			   "%s: %s%s x %s in %s %s %s, %s, %s in %s (%s "
			   "cells/s)%s%s",
			   g->path, g->single ? "" : "a directory with ",
			   counted(r->before, "cell"),
			   counted(g->genes, "gene"), grouped(g->files),
			   g->cells, g->files == 1 ? "file" : "files",
			   counted(r->numbers, "number"),
			   human_bytes((double)r->bytes), human_time(s),
			   human_count((double)r->before / s),
			   g->hint[0] ? "; load it with " : "", g->hint);
		return EXIT_OK;
	}
	pen__json_open(&j, NULL, '{');
	pen__json_str(&j, "schema", "penstock.gen/1");
	pen__json_str(&j, "path", g->path);
	pen__json_int(&j, "files", g->files);
	pen__json_int(&j, "samples", r->before);
	pen__json_int(&j, "genes", g->genes);
	pen__json_int(&j, "numbers", r->numbers);
	pen__json_int(&j, "bytes", r->bytes);
	pen__json_num(&j, "seconds", s);
	pen__json_str(&j, "load_with", g->hint);
	pen__json_close(&j, '}');
	return text_out(&j, NULL);
}

/* Settings of the writer, with our threads unless it was given its own. */
static int settle_settings(struct run *r, const struct pen_pairs *of,
			   const char *threads, struct pen_err *err)
{
	bool own = false;

	r->kv = pen__calloc(of->n + 1, sizeof(*r->kv));
	if (!r->kv)
		return pen__fail_nomem(err, "gen", sizeof(*r->kv));
	for (size_t i = 0; i < of->n; i++) {
		r->kv[i] = of->kv[i];
		own = own || !strcmp(of->kv[i].key, "threads");
	}
	r->nkv = of->n;
	if (!own &&
	    pen__opt_find(pen__cells_format_opts(r->g->cells), "threads"))
		r->kv[r->nkv++] = (struct pen_opts_kv){ "threads", threads };
	return 0;
}

int gen_cells(struct gen *g)
{
	struct run r = { .g = g };
	struct pen_err err = { 0 };
	const uint64_t t0 = pen__now_ns();
	char threads[24];
	int rc;

	if (!g->samples)
		g->samples = CELLS;
	for (size_t n = strlen(g->path); n > 1 && g->path[n - 1] == '/'; n--)
		g->path[n - 1] = '\0';
	g->suffix = pen__cells_format_suffix(g->cells);
	g->single = g->files == 1 && pen__cells_format_for(g->path) == g->cells;
	if (g->files > 1 && g->overlap < 1)
		snprintf(g->hint, sizeof(g->hint), "format.join=inner");
	snprintf(threads, sizeof(threads), "%d", (int)g->threads);
	rc = gen_check_name(g, g->cells, &err);
	if (!rc)
		rc = settle_settings(&r, &g->for_format, threads, &err);
	if (!rc)
		rc = pen__maker_open(&g->maker, "posix", NULL, 0, &err);
	if (!rc)
		rc = gen_check_target(g, &err);
	progress_start(&g->progress, "cells", g->samples * g->files);
	for (uint64_t i = 0; !rc && i < g->files; i++)
		rc = make_file(&r, i, &err);
	progress_end(&g->progress);
	pen__free(r.kv);
	if (interrupted())
		return 128 + interrupted();
	return rc ? complain(&err)
		  : report(&r, (double)(pen__now_ns() - t0) / 1e9);
}
