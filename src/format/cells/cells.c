/*
 * Single cells: a row of a matrix is a sample. Sparse rows become dense ones,
 * or stay lists (output=csr); the same row of further matrices, and columns of
 * obs, are further fields.
 *
 * What is refused is said where it is found: matrices by column in
 * cells_index.c, files that do not fit together in cells_bind.c.
 */
#include "format/cells/cells.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "format/value.h"

#define MOST_LIST ((size_t)1 << 28) /* bytes of a list of genes */
#define FIELD_NAME (sizeof(((struct pen_field *)0)->name) - 1)

static const char *const outputs[] = { "dense", "csr", NULL };
static const char *const joins[] = { "same", "inner", "outer", NULL };

#define OFF(x) offsetof(struct pen_cells, x)
const struct pen_opt pen__zarr_opts[] = {
	PEN_PLAIN_OPTS,
	{ .name = "matrix",
	  .type = PEN_OPT_STR,
	  .off = OFF(matrix),
	  .dflt = "X",
	  .help = "which matrix: X, raw, layers/NAME or obsm/NAME; several "
		  "separated by commas: the first is X, others have their "
		  "names" },
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
	  .help = "of the numbers: a float, or an integer; "
		  "float32 when empty, and obsm as it is stored" },
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
	{ .name = "join",
	  .type = PEN_OPT_ENUM,
	  .off = OFF(join),
	  .dflt = "same",
	  .choices = joins,
	  .help = "files with other genes: same: refuse them; inner: genes "
		  "that all have; outer: that any has, 0 where it is not" },
	{ .name = "source",
	  .type = PEN_OPT_BOOL,
	  .off = OFF(source),
	  .dflt = "false",
	  .help = "a field `source`: which file, counted from 0" },
	{ .name = "var",
	  .type = PEN_OPT_STR,
	  .off = OFF(var),
	  .help = "columns of var to keep with the data set, a,b,c, or * for "
		  "all; _index: the genes' names" },
	{ .name = "obs",
	  .type = PEN_OPT_STR,
	  .off = OFF(obs),
	  .help = "columns of obs to load as fields, a,b,c, or * for all; "
		  "categories and strings as int32 codes; _index: the "
		  "cells' names" },
	{ .name = "copy",
	  .type = PEN_OPT_BOOL,
	  .off = OFF(copy),
	  .dflt = "false",
	  .help = "as convert reads: numbers of the types they are stored in, "
		  "sparse ones as lists, and columns of obs not as fields" },
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
	if (p->type == PEN_BOOL || p->type > PEN_F64)
		return pen__fail(err, PEN_EINVAL, "dtype",
				 "%s is no type of a matrix; there are floats "
				 "and integers",
				 name);
	if (p->dtype && p->type < PEN_F16 && (p->log1p || p->normalize > 0))
		return pen__fail(err, PEN_EINVAL, "dtype",
				 "%s cannot hold what format.normalize= and "
				 "format.log1p= "
				 "give; ask for a float",
				 name);
	return 0;
}

/* The last part of its path; of raw, what it is of. */
static void name_slot(struct pen_cells_slot *t)
{
	const char *last = strrchr(t->path, '/');

	if (strcmp(t->path, "raw/X") == 0)
		last = NULL;
	snprintf(t->name, sizeof(t->name), "%.*s",
		 (int)(last ? strlen(last + 1) : strcspn(t->path, "/")),
		 last ? last + 1 : t->path);
}

static int add_slot(struct pen_cells *p, const char *s, size_t n,
		    struct pen_err *err)
{
	struct pen_cells_slot *t = &p->slot[p->nmatrices];
	const char *last;

	snprintf(t->path, sizeof(t->path), "%.*s", (int)n, s);
	last = strrchr(t->path, '/');
	if (!n || n >= sizeof(t->path) || (last && !last[1]) ||
	    (!p->copy && strlen(last ? last + 1 : t->path) >= sizeof(t->name)))
		return pen__fail(err, PEN_EINVAL, "matrix",
				 "'%.*s' is no matrix; name X, raw, "
				 "layers/NAME or obsm/NAME, several separated "
				 "by commas",
				 n < 100 ? (int)n : 100, s);
	t->frame = PEN_CELLS_VAR;
	if (strcmp(t->path, "raw") == 0 || strcmp(t->path, "raw/X") == 0)
		t->frame = PEN_CELLS_RAW_VAR;
	else if (strncmp(t->path, "obsm/", 5) == 0)
		t->frame = PEN_CELLS_NOVAR;
	if (!p->nmatrices)
		snprintf(t->name, sizeof(t->name), "X");
	else if (p->copy) /* nobody asks for them by name */
		snprintf(t->name, sizeof(t->name), "%" PRIu32, p->nmatrices);
	else
		name_slot(t);
	for (uint32_t i = 0; i < p->nmatrices; i++)
		if (strcmp(p->slot[i].name, t->name) == 0)
			return pen__fail(err, PEN_EINVAL, "matrix",
					 "both %s and %s would be field %s",
					 p->slot[i].path, t->path, t->name);
	p->nmatrices++;
	return 0;
}

static int check_matrix(struct pen_cells *p, struct pen_err *err)
{
	const char *s = p->matrix;
	int rc = 0;

	if (!s)
		return pen__fail(err, PEN_EINVAL, "matrix",
				 "name one: X, raw, layers/NAME or obsm/NAME");
	p->slot = pen__calloc(PEN_CELLS_MATRICES, sizeof(*p->slot));
	if (!p->slot)
		return pen__fail_nomem(err, "matrix", sizeof(*p->slot));
	while (rc >= 0 && s) {
		const size_t n = strcspn(s, ",");

		if (p->nmatrices == PEN_CELLS_MATRICES)
			return pen__fail(err, PEN_EINVAL, "matrix",
					 "more than %d of them",
					 PEN_CELLS_MATRICES);
		rc = add_slot(p, s, n, err);
		s = s[n] ? s + n + 1 : NULL;
	}
	return rc;
}

/* Names of columns, for option `what`: how many, and how long they can be. */
static int check_names(const char *what, const char *list, uint32_t most,
		       size_t longest, struct pen_err *err)
{
	const char *s = list;

	if (s && strcmp(s, "*") == 0)
		return 0;
	for (uint32_t i = 0; s; i++) {
		const size_t n = strcspn(s, ",");

		if (!n || n > longest || i == most)
			return pen__fail(err, PEN_EINVAL, what,
					 "at most %" PRIu32 " names of up to "
					 "%zu bytes, separated by commas, none "
					 "empty",
					 most, longest);
		if (pen__in_list(list, s, n) != (int)i)
			return pen__fail(err, PEN_EINVAL, what,
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
	if (*s == '@' && s[1])
		return read_list(p, s + 1, err);
	if (strncmp(s, "var:", 4) == 0 && s[4] && p->join != PEN_CELLS_SAME)
		return pen__fail(
			err, PEN_EINVAL, "genes",
			"var:COLUMN chooses genes of each file by "
			"itself, which format.join= does not; write first:N "
			"or @FILE");
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
	const uint32_t most = 100000;
	int rc = check_dtype(p, err);

	if (rc >= 0)
		rc = check_matrix(p, err);
	if (rc >= 0)
		rc = check_names(
			"obs", p->obs,
			p->copy ? most : PEN_MAX_FIELDS - 2 * p->nmatrices - 1,
			p->copy ? PEN_CELLS_NAME - 1 : FIELD_NAME, err);
	if (rc >= 0)
		rc = check_names("var", p->var, most, PEN_CELLS_NAME - 1, err);
	if (rc >= 0)
		rc = check_genes(p, err);
	return rc;
}

void pen__cells_close(struct pen_format *f)
{
	struct pen_cells *p = f->priv;

	pen__cells_unbind(f);
	pen__free(p->slot);
	pen__buf_fini(&p->list);
}

/* ---- samples ---- */

static const struct pen_cells_view *view_of(const struct pen_format *f,
					    uint32_t object)
{
	const struct pen_cells *p = f->priv;

	return &p->view[f->ix->blob_of(f->ix, object)];
}

/* The slot that a field is of; NULL: a column of obs. */
static const struct pen_cells_slot *slot_of(const struct pen_cells *p,
					    uint32_t field, uint32_t *matrix)
{
	for (*matrix = 0; *matrix < p->nmatrices; ++*matrix) {
		const struct pen_cells_slot *t = &p->slot[*matrix];

		if (field - t->field < (t->list ? 2u : 1u))
			return t;
	}
	return NULL;
}

void pen__cells_shape(const struct pen_format *f, uint32_t object, uint64_t k,
		      uint32_t field, int64_t *shape)
{
	const struct pen_cells_view *v = view_of(f, object);
	const struct pen_cells_slot *t;
	uint64_t at, end;
	uint32_t i;

	t = slot_of(f->priv, field, &i);
	if (!t)
		return;
	if (!t->list) {
		shape[0] = (int64_t)t->ntake;
		return;
	}
	if (!v->matrix[i].sparse) {
		shape[0] = (int64_t)pen__cells_most(&v->matrix[i]);
		return;
	}
	pen__cells_span(&v->matrix[i], pen__cells_row(v, k), &at, &end);
	shape[0] = (int64_t)(end - at);
}

/* Bytes that are the row's already need not be emitted. */
static void mark_plain(const struct pen_cells_slot *t,
		       const struct pen_cells_matrix *m, struct pen_unit *units)
{
	struct pen_unit *u = &units[t->data], *g = &units[t->indices];

	if (m->plain && u->object != PEN_NO_OBJECT) {
		u->flags = PEN_UNIT_PLAIN;
		u->field = (uint16_t)t->field;
	}
	if (t->list && pen__cells_whole(m) &&
	    m->indices.layout == PEN_CHUNKED_FLAT && !m->indices.swap &&
	    m->indices.dtype == PEN_I32 && g->object != PEN_NO_OBJECT) {
		g->flags = PEN_UNIT_PLAIN;
		g->field = (uint16_t)(t->field + 1);
	}
}

void pen__cells_locate(const struct pen_format *f, uint32_t object, uint64_t k,
		       struct pen_unit *units)
{
	const struct pen_cells *p = f->priv;
	const struct pen_cells_view *v = view_of(f, object);
	const uint64_t row = pen__cells_row(v, k);

	for (uint32_t i = 0; i < f->units_per_sample; i++)
		units[i] = (struct pen_unit){ .object = PEN_NO_OBJECT };
	for (uint32_t i = 0; i < p->nmatrices; i++) {
		const struct pen_cells_matrix *m = &v->matrix[i];
		const struct pen_cells_slot *t = &p->slot[i];

		pen__cells_array_locate(m, &m->data, row, units + t->data);
		if (m->sparse)
			pen__cells_array_locate(m, &m->indices, row,
						units + t->indices);
		mark_plain(t, m, units);
	}
	for (uint32_t i = 0; i < f->units_per_sample; i++) {
		if (units[i].object == PEN_NO_OBJECT)
			continue;
		units[i].object = units[i].object ? units[i].object - 1
						  : object;
		units[i].id |= (uint64_t)object << 32;
	}
}

/* Which array a chunk is of: they are numbered one after another. */
static bool chunk_of(const struct pen_cells *p, const struct pen_cells_view *v,
		     uint32_t id, struct pen_chunk_job *c, uint32_t *matrix)
{
	for (*matrix = 0; *matrix < p->nmatrices; ++*matrix) {
		const struct pen_cells_matrix *m = &v->matrix[*matrix];

		for (int i = 0; i < (m->sparse ? 2 : 1); i++) {
			c->a = i ? &m->indices : &m->data;
			c->number = id - c->a->id0;
			if (c->number < c->a->nchunks)
				return true;
		}
	}
	return false;
}

/* Rows of the chunk are those of its group. */
static bool rows_of(const struct pen_cells_matrix *m,
		    const struct pen_chunk_job *c, struct pen_cellrows *r)
{
	const uint64_t row = c->number * c->a->group_rows;
	const uint64_t left = m->nrows - row;

	if (c->a->layout != PEN_CHUNKED_GROUPED || !m->indptr ||
	    row >= m->nrows)
		return false;
	r->width = m->width;
	r->starts = m->indptr + row * m->width;
	r->nrows =
		(uint32_t)(left < c->a->group_rows ? left : c->a->group_rows);
	return true;
}

#define MOST_USERS 65536u /* beyond these nobody counts */

/* Rows on either side are looked at until one lies elsewhere. */
uint64_t pen__cells_users(const struct pen_format *f, uint32_t object,
			  uint64_t k, const struct pen_unit *u)
{
	const struct pen_cells_view *v = view_of(f, object);
	struct pen_chunk_job c = { 0 };
	uint64_t n = 0, seen = 0, i;
	uint32_t matrix;
	bool any;

	if (!chunk_of(f->priv, v, (uint32_t)u->id, &c, &matrix) ||
	    c.a->layout == PEN_CHUNKED_FLAT)
		return 0;
	for (i = k; seen < MOST_USERS; i--, seen++) {
		if (pen__cells_side(&v->matrix[matrix], c.a, c.number,
				    pen__cells_row(v, i), &any))
			break;
		n += any;
		if (!i)
			break;
	}
	for (i = k + 1; i < v->nsamples && seen < MOST_USERS; i++, seen++) {
		if (pen__cells_side(&v->matrix[matrix], c.a, c.number,
				    pen__cells_row(v, i), &any))
			break;
		n += any;
	}
	return seen < MOST_USERS ? n : 0;
}

int pen__cells_unpack(const struct pen_format *f, const struct pen_unit *u,
		      struct pen_span raw, void *out, struct pen_scratch *s,
		      struct pen_err *err)
{
	/* a chunk may be an object of its own */
	const struct pen_cells_view *v = view_of(f, (uint32_t)(u->id >> 32));
	const struct pen_cells *p = f->priv;
	struct pen_chunk_job c = { .raw = raw,
				   .out = out,
				   .size = (size_t)u->size,
				   .narrow = f->narrow,
				   .scratch = s };
	const struct pen_cells_matrix *m = NULL;
	const char *why = "no such chunk";
	struct pen_cellrows rows;
	char name[256], where[640];
	int rc = PEN_EDATA;
	uint32_t i;

	if (chunk_of(p, v, (uint32_t)u->id, &c, &i)) {
		m = &v->matrix[i];
		if (rows_of(m, &c, &rows))
			c.rows = &rows;
		rc = pen__chunked_unpack(&c, &why);
	}
	if (rc >= 0)
		return rc;
	if (rc == PEN_ENOMEM)
		return pen__fail_nomem(err, f->ops->name, 0);
	f->ix->name_of(f->ix, u->object, name, sizeof(name));
	snprintf(where, sizeof(where), "%s:%s%s", name,
		 m ? p->slot[i].path : p->matrix,
		 !m || !m->sparse     ? ""
		 : c.a == &m->indices ? "/indices"
				      : "/data");
	return pen__fail(err, PEN_EDATA, where, "%s", why);
}

/* ---- for who copies cells elsewhere ---- */

uint32_t pen__cells_nvar(const struct pen_format *f)
{
	return ((const struct pen_cells *)f->priv)->nvars;
}

const struct pen_cells_field *pen__cells_var(const struct pen_format *f,
					     uint32_t i)
{
	return &((const struct pen_cells *)f->priv)->vars[i];
}

uint32_t pen__cells_var_row(const struct pen_format *f, uint32_t column)
{
	return ((const struct pen_cells *)f->priv)->var_row[column];
}

struct pen_span pen__cells_gene(const struct pen_format *f, uint32_t column)
{
	return ((const struct pen_cells *)f->priv)->gene[column];
}

const struct pen_cells_field *pen__cells_obs(const struct pen_format *f,
					     uint32_t i)
{
	return &((const struct pen_cells *)f->priv)->view0->field[i];
}
