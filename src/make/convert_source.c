/*
 * Derives the spec of a writer from a loader of single cells. A data set is
 * opened twice: once to find the matrices, then with exactly these. Refuses
 * formats without cells. Lists what no writer supports.
 */
#include "make/convert_source.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

#define BATCH_BYTES ((uint64_t)8 << 20)

static int nomem(struct pen_err *err, size_t n)
{
	return pen__fail_nomem(err, "convert", n);
}

/* ---- settings ---- */

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
		{ "shapes", "auto" }, { "format.copy", "true" },
	};
	int rc = 0;

	for (size_t i = 0; rc >= 0 && i < sizeof(how) / sizeof(*how); i++)
		rc = set(s, how[i][0], how[i][1], err);
	return rc;
}

/* Sets batches of a few megabytes, whatever the size of a row. ds has one of
 * the matrices. */
static int set_batch(struct pen_cellsource *s, const struct pen_dataset *ds,
		     uint32_t nmatrices, struct pen_err *err)
{
	uint64_t row = 1, n;
	char text[24];

	for (uint32_t i = 0; ds && i < ds->format->nfields; i++)
		row += ds->format->field[i].max_bytes;
	n = BATCH_BYTES / row / nmatrices;
	s->batch_size = n < 16 ? 16 : n > 4096 ? 4096 : n;
	if (s->like)
		s->batch_size = s->like->batch_size;
	snprintf(text, sizeof(text), "%" PRIu64, s->batch_size);
	return set(s, "batch_size", text, err);
}

/* The requested columns, after the index. */
static int set_asked(struct pen_cellsource *s, const char *key,
		     const char *asked, bool index, struct pen_err *err)
{
	struct pen_text list = { 0 };
	int rc;

	if (!asked || strcmp(asked, "*") == 0)
		return set(s, key, "*", err);
	pen__text_add(&list, "%s%s",
		      index && strncmp(asked, "_index", 6) != 0
			      ? *asked ? "_index," : "_index"
			      : "",
		      asked);
	rc = list.failed ? nomem(err, list.n) : set(s, key, list.p, err);
	pen__text_fini(&list);
	return rc;
}

static int set_matrices(struct pen_cellsource *s, const struct pen_cells *p,
			const char *asked, struct pen_err *err)
{
	struct pen_text list = { 0 };
	int rc = 0;

	pen__text_add(&list, "X");
	if (!asked)
		pen__left_choose(&s->left, p, &list);
	pen__left_rest(&s->left, p, asked != NULL);
	if (s->left.bad || list.failed)
		rc = nomem(err, list.n);
	else if (!asked)
		rc = set(s, "format.matrix", list.p, err);
	pen__text_fini(&list);
	return rc;
}

static uint32_t count_commas(const char *s)
{
	uint32_t n = 1;

	for (; s && *s; s++)
		n += *s == ',';
	return n;
}

/* The user's selection, which the settings replace. */
struct asked {
	char *obs, *var, *matrix;
};

static int see_asked(struct pen_cellsource *s, struct asked *a,
		     struct pen_err *err)
{
	const struct pen_pairs *kv = &s->set->for_format;
	const char *obs = pen__pairs_get(kv, "obs");
	const char *var = pen__pairs_get(kv, "var");
	const char *matrix = pen__pairs_get(kv, "matrix");

	*a = (struct asked){ 0 };
	if ((obs && !(a->obs = pen__strdup(obs))) ||
	    (var && !(a->var = pen__strdup(var))) ||
	    (matrix && *matrix && !(a->matrix = pen__strdup(matrix))))
		return nomem(err, 0);
	return 0;
}

/* Inspects the data set and settles the selection. */
static int look(struct pen_cellsource *s, const struct asked *a,
		struct pen_err *err)
{
	struct pen_dataset *ds = NULL;
	const struct pen_cells *p;
	int rc = set(s, "format.obs", "", err);

	if (rc >= 0)
		rc = set(s, "format.var", "", err);
	if (rc >= 0)
		rc = pen_dataset_open(&ds, s->set, err);
	if (rc >= 0) {
		p = ds->format->priv;
		rc = set_matrices(s, p, a->matrix, err);
		if (rc >= 0)
			rc = set_asked(s, "format.obs", a->obs,
				       p->view0->obs_index.n > 0, err);
		if (rc >= 0)
			rc = set_asked(s, "format.var", a->var,
				       p->view0->var_index.n > 0, err);
		if (rc >= 0)
			rc = set_batch(s, ds,
				       count_commas(pen__pairs_get(
					       &s->set->for_format, "matrix")),
				       err);
	}
	pen_dataset_close(ds);
	return rc;
}

static int settle(struct pen_cellsource *s, struct asked *a,
		  struct pen_err *err)
{
	int rc = set_common(s, err);

	if (rc < 0)
		return rc;
	if (!s->like)
		return look(s, a, err);
	rc = set(s, "format.obs", "*", err);
	if (rc >= 0)
		rc = set(s, "format.var", s->like->spec.nvar ? "*" : "", err);
	return rc < 0 ? rc : set_batch(s, NULL, 1, err);
}

/* ---- the spec ---- */

/* Strings as C strings, kept in mem: n pointers, followed by the characters. */
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

/* Parses the names of a blob; the caller frees the result. */
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

static bool is_index(const struct pen_cells_field *c)
{
	return c->name.n == 6 && memcmp(c->name.p, "_index", 6) == 0;
}

/* The mask of the preceding column. */
static struct pen_cells_column_spec
mask_of(const struct pen_cells_column_spec *c)
{
	return (struct pen_cells_column_spec){ .name = c->name,
					       .dtype = PEN_BOOL,
					       .mask = true };
}

static int put_obs(struct pen_cellsource *s, uint32_t i, struct pen_err *err)
{
	const struct pen_format *f = s->l->ds->format;
	const struct pen_cells_field *c = pen__cells_obs(f, i);
	const struct pen_cells_labels *label = &s->p->label[i];
	const bool index = i == 0 && is_index(c);
	uint32_t at = s->spec.nobs;
	struct pen_cells_column_spec *to = &s->obs[at];

	if (index && s->like && !s->like->obs_index)
		return 0; /* made up by a writer */
	*to = (struct pen_cells_column_spec){
		.name = put_name(s, index ? s->p->view0->obs_index : c->name),
		.dtype = (enum pen_dtype)c->dtype,
		.coded = c->coded,
		.index = index,
		.ordered = c->ordered,
		.nnames = index ? 0 : label->n,
	};
	s->column[at] = (struct pen_cellsource_column){ .from = i };
	s->spec.nobs++;
	s->obs_index |= index;
	if (index)
		s->index = label;
	else if (c->coded)
		to->names = put_names(s, label->s, label->n);
	if (!to->name || (c->coded && !index && !to->names))
		return nomem(err, label->n);
	if (c->mask) {
		s->obs[at + 1] = mask_of(to);
		s->column[at + 1] =
			(struct pen_cellsource_column){ .from = i,
							.mask = true };
		s->spec.nobs++;
	}
	return 0;
}

/* source=true: an additional column with the file of each cell. */
static int put_source(struct pen_cellsource *s, struct pen_err *err)
{
	const struct pen_format *f = s->l->ds->format;
	const uint32_t field = s->p->obs_field + s->p->nobs;
	const uint32_t n = (uint32_t)pen__cells_nlabels(f, field);
	const size_t cap = 4096;
	struct pen_cells_column_spec *to = &s->obs[s->spec.nobs];
	struct pen_span *name = pen__calloc((size_t)n + 1, sizeof(*name));
	char *text = pen__calloc((size_t)n + 1, cap);

	*to = (struct pen_cells_column_spec){
		.name = "source", .dtype = PEN_I32, .coded = true, .nnames = n
	};
	s->column[s->spec.nobs++] =
		(struct pen_cellsource_column){ .source = true };
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

/* Whether the first file describes all genes of the matrix. */
static bool is_covered(const struct pen_cellsource *s)
{
	for (uint32_t j = 0; j < s->spec.ncols; j++)
		if (pen__cells_var_row(s->l->ds->format, j) == PEN_CELLS_NONE)
			return false;
	return true;
}

/* The mask of the last column of var. */
static int put_mask(struct pen_cellsource *s, const struct pen_cells_field *c,
		    struct pen_err *err)
{
	const uint32_t n = s->spec.nvar;
	uint8_t *values = pen__calloc(s->spec.ncols + 1, 1);

	s->var_values[n] = values;
	s->var[n] = mask_of(&s->var[n - 1]);
	if (!values)
		return nomem(err, s->spec.ncols);
	for (uint32_t j = 0; j < s->spec.ncols; j++)
		values[j] = c->mask[pen__cells_var_row(s->l->ds->format, j)] !=
			    0;
	s->spec.nvar++;
	return 0;
}

/* Column i of var, restricted to the genes of the matrix. */
static int put_var(struct pen_cellsource *s, uint32_t i, struct pen_err *err)
{
	const struct pen_format *f = s->l->ds->format;
	const struct pen_cells_field *c = pen__cells_var(f, i);
	const size_t size = pen_dtype_size((enum pen_dtype)c->dtype);
	struct pen_cells_column_spec *to = &s->var[s->spec.nvar];
	uint8_t *values = pen__calloc(s->spec.ncols + 1, size);
	struct pen_span *names = take_names(c->names, c->nnames);
	const bool index = i == 0 && is_index(c);

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
	return c->mask ? put_mask(s, c, err) : 0;
}

/* Genes that are not all in the first file: only their names are known. */
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
	for (uint32_t i = 0; i < pen__cells_nvar(f); i++)
		if (!is_index(pen__cells_var(f, i)))
			pen__left_add(&s->left, "var",
				      pen__cells_var(f, i)->name);
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

/* The index type for a writer: that of the file if it is a usual one. */
static enum pen_dtype indices_of(const struct pen_cells_matrix *m)
{
	const enum pen_dtype t = m->sparse ? pen__chunked_declared(&m->indices)
					   : PEN_I32;

	return t == PEN_I64 || t == PEN_U16 || t == PEN_U32 ? t : PEN_I32;
}

/* Matrices other than the first. */
static void put_extra(struct pen_cellsource *s)
{
	for (uint32_t i = 1; i < s->p->nmatrices; i++) {
		const struct pen_cells_slot *t = &s->p->slot[i];
		uint32_t n;

		if (t->list) {
			n = s->spec.ncsr++;
			s->csr_at[n] = t->field;
			s->csr[n] = (struct pen_cells_csr_spec){
				.path = t->path,
				.dtype = t->type,
				.indices = indices_of(&s->p->view0->matrix[i]),
				.ncols = t->ntake
			};
		} else {
			n = s->spec.ndense++;
			s->dense_at[n] = t->field;
			s->dense[n] = (struct pen_cells_dense_spec){ t->path,
								     t->type,
								     t->ntake };
		}
	}
}

static void put_matrix(struct pen_cellsource *s)
{
	const struct pen_cells_slot *t = &s->p->slot[0];

	s->x = t->field;
	s->spec.nrows = pen_dataset_nsamples(s->l->ds);
	s->spec.ncols = t->ntake;
	s->spec.sparse = t->list;
	s->spec.dtype = t->type;
	s->spec.indices = indices_of(&s->p->view0->matrix[0]);
}

static bool make_room(struct pen_cellsource *s)
{
	/* each may have a mask, plus one for the source */
	const uint32_t nobs = 2 * s->p->nobs + 1, n = s->p->nmatrices;
	const uint32_t nvar = 2 * pen__cells_nvar(s->l->ds->format) + 1;

	s->obs = pen__calloc(nobs, sizeof(*s->obs));
	s->var = pen__calloc(nvar, sizeof(*s->var));
	s->dense = pen__calloc(n, sizeof(*s->dense));
	s->csr = pen__calloc(n, sizeof(*s->csr));
	s->var_values = pen__calloc((size_t)nvar + 1, sizeof(*s->var_values));
	s->mem = pen__calloc(2 * (nobs + (size_t)nvar) + 2, sizeof(*s->mem));
	s->column = pen__calloc(nobs, sizeof(*s->column));
	s->value = pen__calloc(nobs, sizeof(*s->value));
	s->dense_at = pen__calloc(n, sizeof(*s->dense_at));
	s->csr_at = pen__calloc(n, sizeof(*s->csr_at));
	s->pointer = pen__calloc(nobs + (size_t)n, sizeof(*s->pointer));
	s->lists = pen__calloc(n, sizeof(*s->lists));
	return s->obs && s->var && s->dense && s->csr && s->var_values &&
	       s->mem && s->column && s->value && s->dense_at && s->csr_at &&
	       s->pointer && s->lists;
}

static int describe(struct pen_cellsource *s, const struct asked *a,
		    struct pen_err *err)
{
	int rc = 0;

	if (!make_room(s))
		return nomem(err, s->p->nobs * sizeof(*s->obs));
	put_matrix(s);
	put_extra(s);
	for (uint32_t i = 0; rc >= 0 && i < s->p->nobs; i++)
		rc = put_obs(s, i, err);
	if (rc >= 0 && s->p->source)
		rc = put_source(s, err);
	if (rc >= 0)
		rc = put_vars(s, err);
	if (!a->obs || strcmp(a->obs, "*") == 0)
		pen__left_columns(&s->left, s->p, true);
	if (!a->var || strcmp(a->var, "*") == 0)
		pen__left_columns(&s->left, s->p, false);
	if (rc >= 0 && s->left.bad)
		rc = nomem(err, 0);
	s->spec.obs = s->obs;
	s->spec.var = s->var;
	s->spec.dense = s->dense;
	s->spec.csr = s->csr;
	s->spec.var_values = (const void *const *)s->var_values;
	return rc;
}

/* ---- open and close ---- */

int pen__cellsource_open(struct pen_cellsource *s, const struct pen_spec *spec,
			 const struct pen_cellsource *like, struct pen_err *err)
{
	struct asked a = { 0 };
	int rc;

	*s = (struct pen_cellsource){ .like = like };
	rc = pen_spec_copy(&s->set, spec, err);
	if (rc >= 0) {
		s->set->cells = PEN_CELLS_OPTS + 1; /* matrix */
		rc = see_asked(s, &a, err);
	}
	if (rc >= 0)
		rc = settle(s, &a, err);
	if (rc >= 0)
		rc = pen_loader_open(&s->l, s->set, err);
	if (rc >= 0) {
		s->p = s->l->ds->format->priv;
		s->spec.converts = true;
		rc = describe(s, &a, err);
	}
	pen__free(a.obs);
	pen__free(a.var);
	pen__free(a.matrix);
	s->like = NULL;
	if (rc < 0)
		pen__cellsource_close(s);
	return rc;
}

void pen__cellsource_close(struct pen_cellsource *s)
{
	const uint32_t nobs = s->p ? 2 * s->p->nobs + 1 : 0;

	pen_batch_unref(s->batch);
	for (uint32_t i = 0; s->var_values && i < s->spec.nvar + 1; i++)
		pen__free(s->var_values[i]);
	for (uint32_t i = 0; i < s->nmem; i++)
		pen__buf_fini(&s->mem[i]);
	for (uint32_t i = 0; s->value && i < nobs; i++)
		pen__buf_fini(&s->value[i]);
	pen__buf_fini(&s->at);
	pen__left_fini(&s->left);
	pen__free(s->obs);
	pen__free(s->var);
	pen__free(s->dense);
	pen__free(s->csr);
	pen__free(s->var_values);
	pen__free(s->mem);
	pen__free(s->column);
	pen__free(s->value);
	pen__free(s->dense_at);
	pen__free(s->csr_at);
	pen__free(s->pointer);
	pen__free(s->lists);
	pen_loader_close(s->l);
	pen_spec_free(s->set);
	*s = (struct pen_cellsource){ 0 };
}

/* ---- rows ---- */

/* The values of a list, counted from the index. */
static uint64_t count_list(const struct pen_cellsource *s, uint32_t field)
{
	const struct pen_dataset *ds = s->l->ds;
	int64_t shape[PEN_MAX_DIMS];
	uint64_t nnz = 0;

	for (uint64_t i = 0; i < s->spec.nrows; i++) {
		uint32_t object;
		uint64_t k;

		pen__index_find(&ds->ix.pub, i, &object, &k);
		ds->format->ops->shape(ds->format, object, k, field, shape);
		nnz += (uint64_t)shape[0];
	}
	return nnz;
}

bool pen__cellsource_count(struct pen_cellsource *s)
{
	for (uint64_t i = 0; i < s->p->nviews; i++)
		for (uint32_t k = 0;
		     s->p->view[i].matrix && k < s->p->nmatrices; k++)
			if (s->p->slot[k].list &&
			    !pen__cells_whole(&s->p->view[i].matrix[k]))
				return false;
	s->spec.nnz = s->spec.sparse ? count_list(s, s->x) : 0;
	for (uint32_t i = 0; i < s->spec.ncsr; i++)
		s->csr[i].nnz = count_list(s, s->csr_at[i]);
	return true;
}

void pen__cellsource_add(struct pen_cells_spec *spec,
			 struct pen_cells_csr_spec *csr,
			 const struct pen_cells_rows *r)
{
	if (spec->sparse)
		spec->nnz += r->start[r->n];
	for (uint32_t i = 0; i < spec->ncsr; i++)
		csr[i].nnz += r->csr[i].start[r->n];
}

/* The object of a row, and the sample in it. */
struct place {
	uint64_t k;
	uint32_t object;
};

static void put_value(const struct pen_cellsource *s, uint32_t column,
		      const struct place *at, struct pen_buf *out)
{
	const struct pen_cellsource_column *c = &s->column[column];
	const size_t size = pen_dtype_size(s->spec.obs[column].dtype);
	const struct pen_format *f = s->l->ds->format;
	uint8_t raw[8];
	uint32_t code;
	bool missing;

	if (c->source) {
		code = pen__cells_source_of(f, at->object);
		pen__buf_put(out, &code, sizeof(code));
		return;
	}
	missing = pen__cells_obs_take(f, c->from, at->object, at->k, raw);
	if (c->mask)
		pen__buf_put(out, &(uint8_t){ missing }, 1);
	else
		pen__buf_put(out, raw, size);
}

/* Columns come from the index, not from the batch. */
static int take_columns(struct pen_cellsource *s, struct pen_err *err)
{
	const struct pen_batch *b = s->batch;
	bool bad;

	s->at.n = 0;
	for (uint32_t i = 0; i < b->nsamples; i++) {
		struct place at;

		pen__index_find(&s->l->ds->ix.pub, b->ids[i], &at.object,
				&at.k);
		pen__buf_put(&s->at, &at, sizeof(at));
	}
	bad = s->at.bad;
	for (uint32_t c = 0; !bad && c < s->spec.nobs; c++) {
		const struct place *at = (const void *)s->at.p;
		struct pen_buf *out = &s->value[c];

		out->n = 0;
		for (uint32_t i = 0; i < b->nsamples; i++)
			put_value(s, c, &at[i], out);
		bad = out->bad;
		s->pointer[c] = out->p;
	}
	return bad ? nomem(err, b->nsamples * sizeof(struct place)) : 0;
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
	rc = take_columns(s, err);
	if (rc < 0)
		return rc;
	t = s->batch->tensors;
	*r = (struct pen_cells_rows){ .n = s->batch->nsamples };
	r->values = t[s->x].data;
	if (s->spec.sparse) {
		r->start = (const uint64_t *)t[s->x].offsets;
		r->indices = t[s->x + 1].data;
	}
	for (uint32_t i = 0; i < s->spec.ndense; i++)
		s->pointer[s->spec.nobs + i] = t[s->dense_at[i]].data;
	for (uint32_t i = 0; i < s->spec.ncsr; i++)
		s->lists[i] = (struct pen_cells_lists){
			(const uint64_t *)t[s->csr_at[i]].offsets,
			t[s->csr_at[i] + 1].data, t[s->csr_at[i]].data
		};
	r->obs = s->pointer;
	r->dense = s->pointer + s->spec.nobs;
	r->csr = s->lists;
	s->done += r->n;
	return 0;
}
