/*
 * From a loader of single cells to the spec of a writer. A data set is opened
 * twice: once to see which columns and which types there are, then for exactly
 * these. Refuses formats that have no cells. Columns that no writer takes are
 * left out, and named.
 */
#include "engine/convert_source.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define BATCH_BYTES ((uint64_t)8 << 20)
#define LIST 65536 /* bytes of names in an option */

static int nomem(struct pen_err *err, size_t n)
{
	return pen__fail_nomem(err, "convert", n);
}

static void leave_out(struct pen_cellsource *s, struct pen_span name)
{
	const size_t n = strlen(s->left_out);

	snprintf(s->left_out + n, sizeof(s->left_out) - n, "%s%.*s",
		 n ? ", " : "", name.n < 64 ? (int)name.n : 64,
		 (const char *)name.p);
}

/* ---- settings ---- */

/* "_index,a,b,c"; what has a comma cannot be asked for. */
static void add_name(struct pen_cellsource *s, char *list, struct pen_span name)
{
	const size_t n = strlen(list);

	if (memchr(name.p, ',', name.n) || n + name.n + 2 > LIST) {
		leave_out(s, name);
		return;
	}
	snprintf(list + n, LIST - n, "%s%.*s", n ? "," : "", (int)name.n,
		 (const char *)name.p);
}

/* What all files' numbers fit into. */
static enum pen_dtype type_of(const struct pen_cells *p)
{
	const enum pen_dtype first =
		pen__cells_declared(&p->view0->matrix[0].data);
	bool same = true, wide = false;

	for (uint64_t i = 0; i < p->nviews; i++) {
		enum pen_dtype t;

		if (!p->view[i].matrix)
			continue;
		t = pen__cells_declared(&p->view[i].matrix[0].data);
		same &= t == first;
		wide |= t == PEN_F64 || (t >= PEN_I32 && t <= PEN_U64);
	}
	if (!same)
		return wide ? PEN_F64 : PEN_F32;
	return first == PEN_BOOL ? PEN_U8 : first;
}

static int set(struct pen_cellsource *s, const char *key, const char *value,
	       struct pen_err *err)
{
	return pen_spec_set(s->set, key, value, err);
}

static int set_common(struct pen_cellsource *s, struct pen_err *err)
{
	static const char *const how[][2] = {
		{ "epochs", "1" },    { "sampler", "sequential" },
		{ "tail", "keep" },   { "drop_last", "false" },
		{ "shuffle", "" },    { "on_error", "fail" },
		{ "shapes", "auto" },
	};
	const struct pen_pairs *asked = &s->set->for_format;
	int rc = 0;

	for (size_t i = 0; rc >= 0 && i < sizeof(how) / sizeof(*how); i++)
		rc = set(s, how[i][0], how[i][1], err);
	if (rc >= 0 && !pen__pairs_get(asked, "obs"))
		rc = set(s, "format.obs", "*", err);
	if (rc >= 0 && !pen__pairs_get(asked, "var"))
		rc = set(s, "format.var", "*", err);
	return rc;
}

/* Batches of some megabytes, whatever a row is. */
static int set_batch(struct pen_cellsource *s, const struct pen_dataset *ds,
		     struct pen_err *err)
{
	uint64_t row = 1, n;
	char text[24];

	for (uint32_t i = 0; i < ds->format->nfields; i++)
		row += ds->format->field[i].max_bytes;
	n = BATCH_BYTES / row;
	snprintf(text, sizeof(text), "%llu",
		 (unsigned long long)(n < 16	 ? 16
				      : n > 4096 ? 4096
						 : n));
	return set(s, "batch_size", text, err);
}

/* Each by its name, after the index. */
static int set_columns(struct pen_cellsource *s, const struct pen_format *f,
		       struct pen_err *err)
{
	const struct pen_cells *p = f->priv;
	char *list = pen__calloc(LIST, 1);
	int rc;

	if (!list)
		return nomem(err, LIST);
	s->obs_index = p->view0->obs_index.n > 0 &&
		       (!s->like || s->like->obs_index);
	s->var_index = p->view0->var_index.n > 0 &&
		       (!s->like || s->like->spec.nvar);
	if (s->obs_index)
		snprintf(list, LIST, "_index");
	for (uint32_t i = 0; i < p->nobs; i++)
		add_name(s, list, pen__cells_obs(f, i)->name);
	rc = set(s, "format.obs", list, err);
	snprintf(list, LIST, "%s", s->var_index ? "_index" : "");
	for (uint32_t i = 0; i < pen__cells_nvar(f); i++)
		add_name(s, list, pen__cells_var(f, i)->name);
	if (rc >= 0)
		rc = set(s, "format.var", list, err);
	pen__free(list);
	return rc;
}

/* Looks at the data set, and settles what is asked of it. */
static int settle(struct pen_cellsource *s, struct pen_err *err)
{
	struct pen_dataset *ds = NULL;
	const struct pen_cells *p;
	int rc = set_common(s, err);

	if (rc >= 0)
		rc = pen_dataset_open(&ds, s->set, err);
	if (rc >= 0 && ds->format->ops->opts != pen__cells_opts)
		rc = pen__fail(err, PEN_EINVAL, s->set->paths[0],
			       "is of format %s, which has no cells; convert "
			       "takes h5ad, zarr and packed",
			       ds->format->ops->name);
	if (rc >= 0) {
		p = ds->format->priv;
		rc = set(s, "format.output",
			 p->view0->matrix[0].sparse ? "csr" : "dense", err);
		if (rc >= 0 && !pen__pairs_get(&s->set->for_format, "dtype"))
			rc = set(s, "format.dtype", pen_dtype_name(type_of(p)),
				 err);
		if (rc >= 0)
			rc = set_columns(s, ds->format, err);
		if (rc >= 0)
			rc = set_batch(s, ds, err);
	}
	pen_dataset_close(ds);
	return rc;
}

/* ---- the spec ---- */

/* Texts as C strings, kept in mem: n pointers, then what they point to. */
static const char *const *put_names(struct pen_cellsource *s,
				    const struct pen_span *name, uint32_t n)
{
	struct pen_buf *b = &s->mem[s->nmem++];
	size_t bytes = ((size_t)n + 1) * sizeof(char *);
	const char **at;
	char *to;

	for (uint32_t i = 0; i < n; i++)
		bytes += name[i].n + 1;
	b->p = pen__calloc(bytes, 1);
	if (!b->p)
		return NULL;
	at = (const char **)(void *)b->p;
	to = (char *)(at + n + 1);
	for (uint32_t i = 0; i < n; i++) {
		at[i] = to;
		if (name[i].n)
			memcpy(to, name[i].p, name[i].n);
		to += name[i].n + 1;
	}
	return at;
}

/* The texts of names as a blob has them; free it. */
static struct pen_span *take_names(struct pen_span names, uint32_t n)
{
	struct pen_bytes b = pen__bytes(names.p, names.n);
	struct pen_span *s = pen__calloc((size_t)n + 1, sizeof(*s));

	for (uint32_t i = 0; s && i < n; i++)
		if (!pen__cells_next_name(&b, &s[i]))
			s[i] = (struct pen_span){ (const uint8_t *)"", 0 };
	return s;
}

static const char *put_name(struct pen_cellsource *s, struct pen_span name)
{
	const char *const *p = put_names(s, &name, 1);

	return p ? p[0] : NULL;
}

static int put_obs(struct pen_cellsource *s, uint32_t i, struct pen_err *err)
{
	const struct pen_format *f = s->l->ds->format;
	const struct pen_cells_field *c = pen__cells_obs(f, i);
	const struct pen_cells_labels *label = &s->p->label[i];
	struct pen_cells_column_spec *to = &s->obs[i];
	const bool index = i == 0 && s->obs_index;

	*to = (struct pen_cells_column_spec){
		.name = put_name(s, index ? s->p->view0->obs_index : c->name),
		.dtype = (enum pen_dtype)c->dtype,
		.coded = c->coded,
		.index = index,
		.ordered = c->ordered,
		.nnames = index ? 0 : label->n,
	};
	s->obs_at[i] = s->p->obs_field + i;
	if (index)
		s->index = label;
	else if (c->coded)
		to->names = put_names(s, label->s, label->n);
	if (!to->name || (c->coded && !index && !to->names))
		return nomem(err, label->n);
	return 0;
}

/* source=true: which file a cell is from, as one more column. */
static int put_source(struct pen_cellsource *s, struct pen_err *err)
{
	const struct pen_format *f = s->l->ds->format;
	const uint32_t field = s->p->obs_field + s->p->nobs;
	const uint32_t n = (uint32_t)pen__cells_nlabels(f, field);
	const size_t cap = 4096;
	struct pen_cells_column_spec *to = &s->obs[s->p->nobs];
	struct pen_span *name = pen__calloc((size_t)n + 1, sizeof(*name));
	char *text = pen__calloc((size_t)n + 1, cap);

	*to = (struct pen_cells_column_spec){
		.name = "source", .dtype = PEN_I32, .coded = true, .nnames = n
	};
	s->obs_at[s->p->nobs] = field;
	for (uint32_t i = 0; name && text && i < n; i++) {
		(void)pen__cells_label(f, field, i, text + i * cap, cap);
		name[i] = (struct pen_span){ (uint8_t *)text + i * cap,
					     strlen(text + i * cap) };
	}
	if (name && text)
		to->names = put_names(s, name, n);
	pen__free(name);
	pen__free(text);
	return to->names ? 0 : nomem(err, n * cap);
}

/* Does the first file describe all genes that there are? */
static bool is_covered(const struct pen_cellsource *s)
{
	for (uint32_t j = 0; j < s->spec.ncols; j++)
		if (pen__cells_var_row(s->l->ds->format, j) == PEN_CELLS_NONE)
			return false;
	return true;
}

/* Column i of var, for the genes that there are. */
static int put_var(struct pen_cellsource *s, uint32_t i, struct pen_err *err)
{
	const struct pen_format *f = s->l->ds->format;
	const struct pen_cells_field *c = pen__cells_var(f, i);
	const size_t size = pen_dtype_size((enum pen_dtype)c->dtype);
	struct pen_cells_column_spec *to = &s->var[s->spec.nvar];
	uint8_t *values = pen__calloc(s->spec.ncols + 1, size);
	struct pen_span *names = take_names(c->names, c->nnames);
	const bool index = i == 0 && s->var_index;

	s->var_values[s->spec.nvar] = values;
	*to = (struct pen_cells_column_spec){
		.name = put_name(s, index ? s->p->view0->var_index : c->name),
		.dtype = (enum pen_dtype)c->dtype,
		.coded = c->coded,
		.index = index,
		.ordered = c->ordered,
		.nnames = c->nnames,
	};
	if (c->coded && names)
		to->names = put_names(s, names, c->nnames);
	pen__free(names);
	if (!values || !to->name || (c->coded && !to->names))
		return nomem(err, s->spec.ncols * size);
	for (uint32_t j = 0; j < s->spec.ncols; j++)
		memcpy(values + j * size,
		       c->values + pen__cells_var_row(f, j) * size, size);
	s->spec.nvar++;
	return 0;
}

/* Genes that are not all of the first file: their names are all there is. */
static int put_joined(struct pen_cellsource *s, struct pen_err *err)
{
	const struct pen_format *f = s->l->ds->format;
	const uint32_t n = (uint32_t)s->spec.ncols;
	struct pen_span *name = pen__calloc((size_t)n + 1, sizeof(*name));
	int32_t *codes = pen__alloc((size_t)n + 1, sizeof(*codes));

	s->var_values[0] = codes;
	for (uint32_t j = 0; name && codes && j < n; j++) {
		name[j] = pen__cells_gene(f, j);
		codes[j] = (int32_t)j;
	}
	s->var[0] = (struct pen_cells_column_spec){
		.name = put_name(s, s->p->view0->var_index),
		.dtype = PEN_I32,
		.coded = true,
		.index = true,
		.nnames = n,
		.names = name ? put_names(s, name, n) : NULL,
	};
	pen__free(name);
	if (!codes || !s->var[0].name || !s->var[0].names)
		return nomem(err, n * sizeof(*name));
	s->spec.nvar = 1;
	for (uint32_t i = 1; i < pen__cells_nvar(f); i++)
		leave_out(s, pen__cells_var(f, i)->name);
	return 0;
}

static int put_vars(struct pen_cellsource *s, struct pen_err *err)
{
	const uint32_t n = pen__cells_nvar(s->l->ds->format);
	int rc = 0;

	if (n && !is_covered(s))
		return put_joined(s, err);
	for (uint32_t i = 0; rc >= 0 && i < n; i++)
		rc = put_var(s, i, err);
	return rc;
}

static int put_dense(struct pen_cellsource *s, struct pen_err *err)
{
	for (uint32_t i = 1; i < s->p->nmatrices; i++) {
		const struct pen_cells_slot *t = &s->p->slot[i];

		if (t->list)
			return pen__fail(err, PEN_ENOTSUP, t->path,
					 "is sparse; besides the first matrix "
					 "dense ones are converted");
		s->dense[i - 1] = (struct pen_cells_dense_spec){ t->path,
								 t->type,
								 t->ntake };
		s->dense_at[i - 1] = t->field;
	}
	return 0;
}

static void put_matrix(struct pen_cellsource *s)
{
	const struct pen_cells_slot *t = &s->p->slot[0];
	const struct pen_cells_matrix *m = &s->p->view0->matrix[0];
	const enum pen_dtype places =
		m->sparse ? pen__cells_declared(&m->indices) : PEN_I32;

	s->x = t->field;
	s->spec.nrows = pen_dataset_nsamples(s->l->ds);
	s->spec.ncols = t->ntake;
	s->spec.sparse = t->list;
	s->spec.dtype = t->type;
	/* what a file has, where it is one of the usual */
	s->spec.indices = places == PEN_I64 || places == PEN_U16 ||
					  places == PEN_U32
				  ? places
				  : PEN_I32;
	s->spec.ndense = s->p->nmatrices - 1;
	s->spec.nobs = s->p->nobs + s->p->source;
}

static int describe(struct pen_cellsource *s, struct pen_err *err)
{
	const uint32_t nobs = s->p->nobs + s->p->source;
	const uint32_t ndense = s->p->nmatrices;
	const uint32_t nvar = pen__cells_nvar(s->l->ds->format) + 1;
	int rc = 0;

	put_matrix(s);
	s->obs = pen__calloc(nobs + 1, sizeof(*s->obs));
	s->var = pen__calloc(nvar, sizeof(*s->var));
	s->dense = pen__calloc(ndense, sizeof(*s->dense));
	s->var_values = pen__calloc(nvar, sizeof(*s->var_values));
	s->mem = pen__calloc(2 * (nobs + (size_t)nvar) + 2, sizeof(*s->mem));
	s->obs_at = pen__calloc(nobs + 1, sizeof(*s->obs_at));
	s->dense_at = pen__calloc(ndense, sizeof(*s->dense_at));
	s->pointer = pen__calloc(nobs + (size_t)ndense, sizeof(*s->pointer));
	if (!s->obs || !s->var || !s->dense || !s->var_values || !s->mem ||
	    !s->obs_at || !s->dense_at || !s->pointer)
		return nomem(err, nobs * sizeof(*s->obs));
	for (uint32_t i = 0; rc >= 0 && i < s->p->nobs; i++)
		rc = put_obs(s, i, err);
	if (rc >= 0 && s->p->source)
		rc = put_source(s, err);
	if (rc >= 0)
		rc = put_vars(s, err);
	if (rc >= 0)
		rc = put_dense(s, err);
	s->spec.obs = s->obs;
	s->spec.var = s->var;
	s->spec.dense = s->dense;
	s->spec.var_values = (const void *const *)s->var_values;
	return rc;
}

/* ---- open and close ---- */

int pen__cellsource_open(struct pen_cellsource *s, const struct pen_spec *spec,
			 const struct pen_cellsource *like, struct pen_err *err)
{
	int rc;

	*s = (struct pen_cellsource){ .like = like };
	rc = pen__spec_copy(&s->set, spec, err);
	if (rc >= 0)
		rc = settle(s, err);
	if (rc >= 0)
		rc = pen_loader_open(&s->l, s->set, err);
	if (rc >= 0) {
		s->p = s->l->ds->format->priv;
		rc = describe(s, err);
	}
	if (rc < 0)
		pen__cellsource_close(s);
	return rc;
}

void pen__cellsource_close(struct pen_cellsource *s)
{
	pen_batch_unref(s->batch);
	for (uint32_t i = 0; s->var_values && i < s->spec.nvar + 1; i++)
		pen__free(s->var_values[i]);
	for (uint32_t i = 0; i < s->nmem; i++)
		pen__buf_fini(&s->mem[i]);
	pen__free(s->obs);
	pen__free(s->var);
	pen__free(s->dense);
	pen__free(s->var_values);
	pen__free(s->mem);
	pen__free(s->obs_at);
	pen__free(s->dense_at);
	pen__free(s->pointer);
	pen_loader_close(s->l);
	pen_spec_free(s->set);
	*s = (struct pen_cellsource){ 0 };
}

/* ---- rows ---- */

bool pen__cellsource_counted(const struct pen_cellsource *s, uint64_t *nnz)
{
	const struct pen_dataset *ds = s->l->ds;
	int64_t shape[PEN_MAX_DIMS];

	*nnz = 0;
	for (uint64_t i = 0; s->spec.sparse && i < s->p->nviews; i++)
		if (s->p->view[i].matrix &&
		    !pen__cells_whole(&s->p->view[i].matrix[0]))
			return false;
	for (uint64_t i = 0; s->spec.sparse && i < s->spec.nrows; i++) {
		uint32_t object;
		uint64_t k;

		pen__index_find(&ds->ix.pub, i, &object, &k);
		ds->format->ops->shape(ds->format, object, k, s->x, shape);
		*nnz += (uint64_t)shape[0];
	}
	return true;
}

int pen__cellsource_next(struct pen_cellsource *s, struct pen_cells_rows *r,
			 struct pen_err *err)
{
	const struct pen_tensor *t;
	int rc;

	pen_batch_unref(s->batch);
	s->batch = NULL;
	rc = pen_loader_next(s->l, &s->batch, err);
	if (rc) {
		s->batch = NULL;
		return rc;
	}
	t = s->batch->tensors;
	*r = (struct pen_cells_rows){ .n = s->batch->nsamples };
	r->values = t[s->x].data;
	if (s->spec.sparse) {
		r->start = (const uint64_t *)t[s->x].offsets;
		r->indices = t[s->x + 1].data;
	}
	for (uint32_t i = 0; i < s->spec.nobs; i++)
		s->pointer[i] = t[s->obs_at[i]].data;
	for (uint32_t i = 0; i < s->spec.ndense; i++)
		s->pointer[s->spec.nobs + i] = t[s->dense_at[i]].data;
	r->obs = s->pointer;
	r->dense = s->pointer + s->spec.nobs;
	s->done += r->n;
	return 0;
}
