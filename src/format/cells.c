/*
 * Single cells: a row of a matrix is a sample. Sparse rows become dense ones,
 * or stay lists (output=csr); columns of obs are further fields.
 *
 * What is refused is said where it is found: matrices by column in
 * cells_index.c, files that do not fit together in cells_bind.c.
 */
#include "format/cells.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "format/value.h"

#define MOST_LIST ((size_t)1 << 28) /* bytes of a list of genes */

static const char *const outputs[] = { "dense", "csr", NULL };

#define OFF(x) offsetof(struct pen_cells, x)
const struct pen_opt pen__cells_opts[] = {
	{ .name = "matrix",
	  .type = PEN_OPT_STR,
	  .off = OFF(matrix),
	  .dflt = "X",
	  .help = "which matrix: X, raw, or layers/NAME" },
	{ .name = "output",
	  .type = PEN_OPT_ENUM,
	  .off = OFF(output),
	  .dflt = "dense",
	  .choices = outputs,
	  .help = "dense: X, a number for every gene; csr: X_data and "
		  "X_indices, those that are stored" },
	{ .name = "dtype",
	  .type = PEN_OPT_STR,
	  .off = OFF(dtype),
	  .dflt = "float32",
	  .help = "of the numbers: a float, or an integer of up to 32 bits" },
	{ .name = "normalize",
	  .type = PEN_OPT_DOUBLE,
	  .off = OFF(normalize),
	  .dflt = "0",
	  .min = 0,
	  .max = 1e30,
	  .help = "scale every cell to this sum over all genes; 0: as it is" },
	{ .name = "log1p",
	  .type = PEN_OPT_BOOL,
	  .off = OFF(log1p),
	  .dflt = "false",
	  .help = "log(1 + x), after normalizing" },
	{ .name = "genes",
	  .type = PEN_OPT_STR,
	  .off = OFF(genes),
	  .help = "some genes only: first:N, @FILE with a name a line, or "
		  "var:COLUMN, a column of booleans; all when empty" },
	{ .name = "obs",
	  .type = PEN_OPT_STR,
	  .off = OFF(obs),
	  .help = "columns of obs to load as fields, a,b,c; categories and "
		  "strings as int32 codes" },
	{ .name = "filter",
	  .type = PEN_OPT_STR,
	  .off = OFF(filter),
	  .help = "some cells only: COLUMN:VALUE|VALUE, several joined "
		  "with &" },
	{ .name = NULL },
};

/* ---- options ---- */

static int check_dtype(struct pen_cells *p, struct pen_err *err)
{
	const char *name = p->dtype ? p->dtype : "float32";
	int rc = pen__parse_dtype(name, &p->type, err);

	if (rc < 0)
		return rc;
	if (p->type == PEN_BOOL || p->type == PEN_I64 || p->type == PEN_U64 ||
	    p->type > PEN_F64)
		return pen__fail(err, PEN_EINVAL, "dtype",
				 "%s is no type of a matrix; there are floats "
				 "and integers of up to 32 bits",
				 name);
	if (p->type < PEN_F16 && (p->log1p || p->normalize > 0))
		return pen__fail(err, PEN_EINVAL, "dtype",
				 "%s cannot hold what normalize= and log1p= "
				 "give; ask for a float",
				 name);
	return 0;
}

static int check_obs(struct pen_cells *p, struct pen_err *err)
{
	const char *s = p->obs;

	for (p->nobs = 0; s; p->nobs++) {
		const size_t n = strcspn(s, ",");

		if (!n || n >= sizeof(((struct pen_field *)0)->name) ||
		    p->nobs == PEN_MAX_FIELDS - 2)
			return pen__fail(err, PEN_EINVAL, "obs",
					 "at most %d names of up to 63 bytes, "
					 "separated by commas, none empty",
					 PEN_MAX_FIELDS - 2);
		if (pen__in_list(p->obs, s, n) != (int)p->nobs)
			return pen__fail(err, PEN_EINVAL, "obs",
					 "%.*s is there twice", (int)n, s);
		s = s[n] ? s + n + 1 : NULL;
	}
	return 0;
}

static int read_list(struct pen_cells *p, const char *path, struct pen_err *err)
{
	FILE *in = fopen(path, "re");
	char piece[4096];
	size_t n;
	int rc = 0;

	if (!in)
		return pen__fail_sys(err, errno, path, "cannot be read");
	while ((n = fread(piece, 1, sizeof(piece), in)) > 0 &&
	       p->list.n < MOST_LIST)
		pen__buf_put(&p->list, piece, n);
	if (ferror(in))
		rc = pen__fail_sys(err, errno, path, "cannot be read");
	else if (p->list.bad || n)
		rc = pen__fail_nomem(err, path, p->list.n);
	fclose(in);
	return rc;
}

static int check_genes(struct pen_cells *p, struct pen_err *err)
{
	const char *s = p->genes;
	char *end;

	if (!s)
		return 0;
	if (p->output == PEN_CELLS_CSR)
		return pen__fail(err, PEN_EINVAL, "genes",
				 "output=csr gives all genes of a row, as the "
				 "file has them; choose genes of output=dense");
	if (*s == '@' && s[1])
		return read_list(p, s + 1, err);
	if (strncmp(s, "var:", 4) == 0 && s[4])
		return 0;
	if (strncmp(s, "first:", 6) == 0 && s[6] >= '1' && s[6] <= '9') {
		errno = 0;
		p->first = strtoull(s + 6, &end, 10);
		if (!*end && !errno)
			return 0;
	}
	return pen__fail(err, PEN_EINVAL, "genes",
			 "'%s' chooses no genes; write first:N, @FILE or "
			 "var:COLUMN",
			 s);
}

int pen__cells_open(struct pen_format *f, struct pen_err *err)
{
	struct pen_cells *p = f->priv;
	int rc = check_dtype(p, err);

	if (rc >= 0 && !p->matrix)
		rc = pen__fail(err, PEN_EINVAL, "matrix",
			       "name one: X, raw, or layers/NAME");
	if (rc >= 0)
		rc = check_obs(p, err);
	if (rc >= 0)
		rc = check_genes(p, err);
	return rc;
}

void pen__cells_close(struct pen_format *f)
{
	struct pen_cells *p = f->priv;

	pen__cells_unbind(f);
	pen__buf_fini(&p->list);
}

/* ---- samples ---- */

static const struct pen_cells_view *view_of(const struct pen_format *f,
					    uint32_t object)
{
	const struct pen_cells *p = f->priv;

	return &p->view[f->ix->blob_of(f->ix, object)];
}

static uint64_t row_of(const struct pen_cells_view *v, uint64_t k)
{
	return v->rows ? pen__cells_u32(v->rows, k) : k;
}

void pen__cells_shape(const struct pen_format *f, uint32_t object, uint64_t k,
		      uint32_t field, int64_t *shape)
{
	const struct pen_cells_view *v = view_of(f, object);
	const uint64_t row = row_of(v, k);

	if (!f->field[field].ndim)
		return;
	shape[0] = f->field[field].shape[0];
	if (shape[0] < 0)
		shape[0] = (int64_t)(pen__cells_start(v, row + 1) -
				     pen__cells_start(v, row));
}

void pen__cells_locate(const struct pen_format *f, uint32_t object, uint64_t k,
		       struct pen_unit *units)
{
	const struct pen_cells *p = f->priv;
	const struct pen_cells_view *v = view_of(f, object);
	const uint64_t row = row_of(v, k);
	const bool list = p->output == PEN_CELLS_CSR;
	struct pen_unit *genes = units + p->indices;

	for (uint32_t i = 0; i < f->units_per_sample; i++)
		units[i] = (struct pen_unit){ .object = PEN_NO_OBJECT };
	if (v->sparse) {
		const uint64_t at = pen__cells_start(v, row);
		const uint64_t end = pen__cells_start(v, row + 1);

		pen__cells_array_locate(&v->data, 0, at, end, units);
		pen__cells_array_locate(&v->indices, 0, at, end, genes);
		if (list && at < end && v->indices.flat && !v->indices.swap &&
		    v->indices.dtype == PEN_I32)
			genes->flags = PEN_UNIT_PLAIN;
	} else {
		pen__cells_array_locate(&v->data, row, 0, v->extent, units);
	}
	if (v->plain && units->object != PEN_NO_OBJECT)
		units->flags = PEN_UNIT_PLAIN;
	for (uint32_t i = 0; i < f->units_per_sample; i++) {
		if (units[i].object == PEN_NO_OBJECT)
			continue;
		units[i].object = object;
		units[i].field = list && i >= p->indices;
		units[i].id |= (uint64_t)object << 32;
	}
}

int pen__cells_unpack(const struct pen_format *f, const struct pen_unit *u,
		      struct pen_span raw, void *out, struct pen_scratch *s,
		      struct pen_err *err)
{
	const struct pen_cells_view *v = view_of(f, u->object);
	const struct pen_cells *p = f->priv;
	const uint32_t id = (uint32_t)u->id;
	const bool genes = v->sparse && id >= v->indices.id0;
	const struct pen_cells_array *a = genes ? &v->indices : &v->data;
	const struct pen_h5_run run = {
		.pipe = &a->pipe,
		.mask = a->masks ? (uint32_t)pen__cells_u32(a->masks,
							    id - a->id0)
				 : 0,
		.room = s->mem,
		.scratch = s,
	};
	const char *why = "no room to unpack";
	char name[256], where[336];
	int rc = PEN_EDATA;

	if (s->size >= pen__h5_pipe_room(&a->pipe, a->chunk_bytes))
		rc = pen__h5_pipe_run(&run, raw, out, (size_t)a->chunk_bytes,
				      &why);
	if (rc >= 0)
		return f->narrow ? pen__cells_narrow(a, out) : 0;
	if (rc == PEN_ENOMEM)
		return pen__fail_nomem(err, f->ops->name, 0);
	f->ix->name_of(f->ix, u->object, name, sizeof(name));
	snprintf(where, sizeof(where), "%s:%s%s", name, p->matrix,
		 genes	     ? "/indices"
		 : v->sparse ? "/data"
			     : "");
	return pen__fail(err, PEN_EDATA, where, "%s", why);
}
