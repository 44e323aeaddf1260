/*
 * Writes generated cells to a file: threads make blocks of rows, which return
 * in order to the caller, which passes them to the writer. The size of a block
 * depends on the file only, because it affects the order of chunks.
 */
#include <string.h>

#include "base/mem.h"
#include "base/ring.h"
#include "base/team.h"
#include "make/synth_cells.h"
#include "format/cells/cells_write.h"

#define BLOCK_NUMBERS ((uint64_t)1 << 18) /* approximate; rows at most: */
#define BLOCK_ROWS 1024

struct block {
	uint64_t serial;
	struct pen_synth_rows *rows;
	const struct pen_cells_rows *made; /* NULL: out of memory */
};

struct line {
	const struct pen_cells_spec *spec;
	uint32_t step; /* rows per block */
	struct block *block;
	unsigned nblocks;
	struct pen_ring *todo;
	struct pen_order *done;
	struct pen_team *team;
};

static void work(void *arg, unsigned i)
{
	struct line *l = arg;
	struct block *b;

	(void)i;
	while ((b = pen__ring_pop(l->todo, NULL, true))) {
		const uint64_t first = b->serial * l->step;
		const uint64_t left = l->spec->nrows - first;

		b->made = pen__synth_rows_make(b->rows, first,
					       left < l->step ? (uint32_t)left
							      : l->step);
		pen__order_put(l->done, b->serial, b);
	}
}

static int line_start(struct line *l, const struct pen_synth_cells *c,
		      unsigned threads, struct pen_err *err)
{
	const unsigned n = threads ? threads : pen__cpus();
	const uint64_t per_row =
		l->spec->sparse ? l->spec->nnz / (l->spec->nrows + 1) + 1
				: l->spec->ncols;
	int rc = 0;

	l->step = BLOCK_NUMBERS / per_row >= BLOCK_ROWS
			  ? BLOCK_ROWS
			  : (uint32_t)(BLOCK_NUMBERS / per_row) + 1;
	l->nblocks = 2 * n + 1;
	l->block = pen__calloc(l->nblocks, sizeof(*l->block));
	if (!l->block || pen__ring_new(&l->todo, l->nblocks, -1) < 0 ||
	    pen__order_new(&l->done, l->nblocks) < 0)
		return pen__fail_nomem(err, "cells",
				       l->nblocks * sizeof(*l->block));
	for (unsigned i = 0; !rc && i < l->nblocks; i++)
		rc = pen__synth_rows_new(&l->block[i].rows, c, l->step, err);
	return rc ? rc
		  : pen__team_start(&l->team, n, "pen-cells", work, l, err);
}

static void line_end(struct line *l)
{
	if (l->todo)
		pen__ring_close(l->todo);
	pen__team_join(l->team);
	pen__ring_free(l->todo);
	pen__order_free(l->done);
	for (unsigned i = 0; l->block && i < l->nblocks; i++)
		pen__synth_rows_free(l->block[i].rows);
	pen__free(l->block);
}

static int write_rows(struct line *l, const struct pen_synth_cells_run *run,
		      struct pen_cells_writer *w, struct pen_err *err)
{
	const uint64_t n = (l->spec->nrows + l->step - 1) / l->step;
	uint64_t asked = 0;
	int rc = 0;

	for (; asked < n && asked < l->nblocks; asked++) {
		l->block[asked].serial = asked;
		pen__ring_push(l->todo, 0, &l->block[asked]);
	}
	for (uint64_t i = 0; i < n; i++) {
		struct block *b = pen__order_get(l->done, NULL);

		if (!b->made)
			return pen__fail_nomem(err, "cells", BLOCK_NUMBERS * 8);
		rc = pen__cells_writer_rows(w, b->made, err);
		if (rc)
			return rc;
		if (asked < n) {
			b->serial = asked++;
			pen__ring_push(l->todo, 0, b);
		}
		if (run->tick && run->tick(run->arg, w->nrows))
			return pen__fail(err, P_INTERRUPTED, run->path,
					 "interrupted");
	}
	return rc;
}

int pen__synth_cells_write(const struct pen_synth_cells *c,
			   const struct pen_synth_cells_run *run,
			   struct pen_err *err)
{
	struct line l = { .spec = pen__synth_cells_spec(c) };
	struct pen_cells_writer *w = NULL;
	int rc;

	rc = pen__cells_writer_open(
		&w, pen__cells_writer_find(run->format), run->path, l.spec,
		(struct pen_opts){ run->kv, run->nkv }, err);
	if (!rc)
		rc = line_start(&l, c, run->threads, err);
	if (!rc)
		rc = write_rows(&l, run, w, err);
	if (!rc)
		rc = pen__cells_writer_finish(w, err);
	line_end(&l);
	pen__cells_writer_close(w);
	return rc;
}

uint64_t pen__synth_cells_numbers(const struct pen_synth_cells *c)
{
	return pen__synth_cells_spec(c)->nnz;
}

uint64_t pen__synth_cells_bytes(const struct pen_synth_cells *c)
{
	const struct pen_cells_spec *s = pen__synth_cells_spec(c);
	const uint64_t item = pen_dtype_size(s->dtype);

	return s->sparse ? s->nnz * (item + pen_dtype_size(s->indices))
			 : s->nrows * s->ncols * item;
}
