/*
 * The tree that anndata has written since 0.8: X, obs and var, layers, obsm and
 * the groups that stay empty, each with its encoding-type and encoding-version.
 * Columns with names become categoricals, the index strings; rows without an
 * index are named by their numbers, as anndata does.
 */
#include "format/cells/anndata_write.h"

#include <math.h>
#include <stdio.h>

#include "base/mem.h"

#define CHUNK_MOST ((uint64_t)1 << 30) /* bytes */
#define CHUNK_TEXT 16384	       /* rows */

struct pen_ad_column {
	const struct pen_cells_column_spec *spec; /* NULL: numbers as names */
	struct pen_ad_array *values, *names;
};

static const struct pen_ad_attrs dict = { "dict", "0.1.0", .shape = NULL };
static const struct pen_ad_attrs array = { "array", "0.2.0", .shape = NULL };
static const struct pen_ad_attrs strings = { "string-array", "0.2.0",
					     .shape = NULL };

/*
 * The strategy of h5py and zarr: a target size that grows with the array, and
 * the array halved until its parts are close to it. They halve all axes in
 * turn; here rows stay together.
 */
static uint64_t usual_chunk(uint64_t nrows, uint64_t row, uint64_t base)
{
	const double all = (double)nrows * (double)row;
	double target = (double)base * exp2(log10(all / 1048576.0));
	uint64_t n = nrows;

	if (!(target > (double)base / 2))
		target = (double)base / 2;
	if (target > (double)base * 64)
		target = (double)base * 64;
	while (n > 1 && (double)n * (double)row >= target * 1.5)
		n = (n + 1) / 2;
	return n;
}

static uint64_t chunk_of(const struct pen_ad *ad, const struct pen_ad_array *a)
{
	const uint64_t row = a->row ? a->row : 1;
	uint64_t n = usual_chunk(a->nrows, row, ad->sink->chunk_base);

	if (a->text)
		n = CHUNK_TEXT;
	else if (a->is_x && ad->chunk)
		n = a->list ? ad->chunk : ad->chunk / (a->ncols ? a->ncols : 1);
	if (n > CHUNK_MOST / row)
		n = CHUNK_MOST / row;
	if (n > a->nrows)
		n = a->nrows;
	return n ? n : 1;
}

/* Copies `like` and completes it. */
static struct pen_ad_array *
add_array(struct pen_ad *ad, const struct pen_ad_array *like, const char *path,
	  const struct pen_ad_attrs *at, struct pen_err *err)
{
	struct pen_ad_array **list, *a = pen__calloc(1, sizeof(*a));

	list = pen__realloc(ad->array, ad->narrays + 1, sizeof(*list));
	if (list)
		ad->array = list;
	if (!a || !list) {
		pen__free(a);
		pen__fail_nomem(err, path, sizeof(*a));
		return NULL;
	}
	*a = *like;
	ad->array[ad->narrays++] = a;
	a->path = pen__strdup(path);
	if (!a->path) {
		pen__fail_nomem(err, path, 0);
		return NULL;
	}
	if (!a->text)
		a->row = pen_dtype_size(a->dtype) *
			 (a->list ? 1 : (size_t)a->ncols);
	a->chunk = chunk_of(ad, a);
	a->plain = !ad->packer;
	if (ad->sink->array(ad, a, at, err))
		return NULL;
	return a;
}

static int fill_path(char buf[1024], const char *a, const char *b,
		     const char *c, struct pen_err *err)
{
	if (snprintf(buf, 1024, "%s/%s%s%s", a, b, c ? "/" : "", c ? c : "") <
	    1024)
		return 0;
	return pen__fail(err, P_TOO_LONG, b, "the name is too long");
}

/* ---- X, layers, obsm ---- */

static struct pen_ad_array *add_part(struct pen_ad *ad,
				     const struct pen_ad_array *like,
				     const char *path, const char *name,
				     struct pen_err *err)
{
	const struct pen_ad_attrs none = { 0 };
	char full[1024];

	return fill_path(full, path, name, NULL, err)
		       ? NULL
		       : add_array(ad, like, full, &none, err);
}

static int add_csr(struct pen_ad *ad, const struct pen_cells_csr_spec *s,
		   struct pen_ad_matrix *m, struct pen_err *err)
{
	const uint64_t shape[2] = { ad->w->spec->nrows, s->ncols };
	const struct pen_ad_attrs csr = { "csr_matrix", "0.1.0",
					  .shape = shape };
	struct pen_ad_array like = {
		.list = true, .grows = true, .is_x = true, .nrows = s->nnz
	};
	int rc = ad->sink->group(ad, s->path, &csr, err);

	if (rc)
		return rc;
	like.dtype = s->dtype;
	m->data = add_part(ad, &like, s->path, "data", err);
	like.dtype = s->indices;
	if (m->data)
		m->indices = add_part(ad, &like, s->path, "indices", err);
	like.is_x = false;
	like.nrows = shape[0] + 1;
	like.dtype = s->nnz <= INT32_MAX ? PEN_I32 : PEN_I64;
	if (m->indices)
		m->indptr = add_part(ad, &like, s->path, "indptr", err);
	return m->indptr ? 0 : err->code;
}

static int add_dense(struct pen_ad *ad, const char *path, enum pen_dtype dtype,
		     uint64_t ncols, struct pen_ad_array **out,
		     struct pen_err *err)
{
	const struct pen_ad_array like = { .dtype = dtype,
					   .is_x = !strcmp(path, "X"),
					   .nrows = ad->w->spec->nrows,
					   .ncols = ncols };

	*out = add_array(ad, &like, path, &array, err);
	return *out ? 0 : err->code;
}

static int add_matrices(struct pen_ad *ad, struct pen_err *err)
{
	static const char *const groups[] = { "layers", "obsm", "varm",
					      "obsp",	"varp", "uns" };
	const struct pen_cells_spec *s = ad->w->spec;
	const struct pen_cells_csr_spec x = { "X", s->dtype, s->indices,
					      s->ncols, s->nnz };
	int rc = s->sparse ? add_csr(ad, &x, &ad->x, err)
			   : add_dense(ad, "X", s->dtype, s->ncols, &ad->x.data,
				       err);

	for (size_t i = 0; !rc && i < sizeof(groups) / sizeof(groups[0]); i++)
		rc = ad->sink->group(ad, groups[i], &dict, err);
	for (uint32_t i = 0; !rc && i < s->ndense; i++)
		rc = add_dense(ad, s->dense[i].path, s->dense[i].dtype,
			       s->dense[i].ncols, &ad->dense[i], err);
	for (uint32_t i = 0; !rc && i < s->ncsr; i++)
		rc = add_csr(ad, &s->csr[i], &ad->csr[i], err);
	return rc;
}

/* ---- obs and var ---- */

/* The narrowest type, as pandas chooses it. */
static enum pen_dtype code_type(uint32_t nnames)
{
	return nnames <= INT8_MAX    ? PEN_I8
	       : nnames <= INT16_MAX ? PEN_I16
				     : PEN_I32;
}

static int add_categorical(struct pen_ad *ad, const char *frame,
			   struct pen_ad_column *c, uint64_t nrows,
			   struct pen_err *err)
{
	const struct pen_cells_column_spec *s = c->spec;
	const struct pen_ad_attrs at = { "categorical", "0.2.0",
					 .ordered = &s->ordered };
	const struct pen_ad_array names = { .text = true,
					    .list = true,
					    .nrows = s->nnames };
	const struct pen_ad_array codes = { .dtype = code_type(s->nnames),
					    .list = true,
					    .nrows = nrows };
	char path[1024];
	int rc = fill_path(path, frame, s->name, NULL, err);

	if (!rc)
		rc = ad->sink->group(ad, path, &at, err);
	if (!rc)
		rc = fill_path(path, frame, s->name, "categories", err);
	if (rc)
		return rc;
	c->names = add_array(ad, &names, path, &strings, err);
	if (!c->names)
		return err->code;
	rc = fill_path(path, frame, s->name, "codes", err);
	if (rc)
		return rc;
	c->values = add_array(ad, &codes, path, &array, err);
	return c->values ? 0 : err->code;
}

/* A nullable column is a group of values and a mask, which follows. */
static int add_nullable(struct pen_ad *ad, const char *frame,
			const struct pen_cells_column_spec *s,
			struct pen_err *err)
{
	const struct pen_ad_attrs at = { s->dtype == PEN_BOOL
						 ? "nullable-boolean"
						 : "nullable-integer",
					 "0.1.0", .shape = NULL };
	char path[1024];
	int rc = fill_path(path, frame, s->name, NULL, err);

	return rc ? rc : ad->sink->group(ad, path, &at, err);
}

static int add_column(struct pen_ad *ad, const char *frame,
		      struct pen_ad_column *c, uint64_t nrows,
		      struct pen_err *err)
{
	const struct pen_cells_column_spec *s = c->spec;
	const bool text = !s || s->coded;
	const bool masked = c[1].spec && c[1].spec->mask;
	const struct pen_ad_array like = { .dtype = s ? s->dtype : PEN_I8,
					   .text = text,
					   .list = true,
					   .nrows = nrows };
	char path[1024];
	int rc = 0;

	if (s && s->coded && !s->index)
		return add_categorical(ad, frame, c, nrows, err);
	if (masked)
		rc = add_nullable(ad, frame, s, err);
	if (!rc)
		rc = fill_path(path, frame, s ? s->name : "_index",
			       masked	      ? "values"
			       : s && s->mask ? "mask"
					      : NULL,
			       err);
	if (rc)
		return rc;
	c->values = add_array(ad, &like, path, text ? &strings : &array, err);
	return c->values ? 0 : err->code;
}

static bool is_index(const struct pen_cells_column_spec *c)
{
	return c->coded && c->index;
}

static int add_frame(struct pen_ad *ad, const char *path, uint64_t nrows,
		     struct pen_ad_column *c, struct pen_err *err)
{
	const bool obs = c == ad->obs;
	const struct pen_cells_spec *s = ad->w->spec;
	struct pen_ad_attrs at = { "dataframe", "0.2.0", .index = "_index",
				   .columns = obs ? s->obs : s->var,
				   .ncolumns = obs ? s->nobs : s->nvar };
	bool named = false;
	int rc;

	for (uint32_t i = 0; i < at.ncolumns; i++) {
		c[i].spec = &at.columns[i];
		if (is_index(c[i].spec)) {
			at.index = c[i].spec->name;
			named = true;
		}
	}
	rc = ad->sink->group(ad, path, &at, err);
	for (uint32_t i = 0; !rc && i < at.ncolumns + !named; i++)
		rc = add_column(ad, path, &c[i], nrows, err);
	return rc;
}

/* ---- values ---- */

#define COPY(to_t, from_t)                                                     \
	for (uint64_t i = 0; i < n; i++)                                       \
	((to_t *)out)[i] = (to_t)(((const from_t *)in)[i] + add)

/* Converts integers of `from` bytes, 4 or 8, to `to` bytes. Only codes are
 * signed, and these are never widened, so unsigned types are right for all. */
static void convert(size_t to, void *out, size_t from, const void *in,
		    uint64_t n, uint64_t add)
{
	if (to == 1)
		COPY(uint8_t, uint32_t);
	else if (to == 2)
		COPY(uint16_t, uint32_t);
	else if (to == 4 && from == 4)
		memcpy(out, in, (size_t)n * 4); /* add is 0 */
	else if (to == 4)
		COPY(uint32_t, uint64_t);
	else if (from == 4)
		COPY(uint64_t, uint32_t);
	else
		COPY(uint64_t, uint64_t);
}

/* n integers of `item` bytes, to be written with `add` added to each. */
struct integers {
	const void *p;
	size_t item;
	uint64_t n, add;
};

static int put_integers(struct pen_ad *ad, struct pen_ad_array *a,
			struct integers v, struct pen_err *err)
{
	const uint8_t *p = v.p;
	int rc = 0;

	while (!rc && v.n) {
		uint64_t k = v.n;
		void *to = pen__ad_room(ad, a, &k, err);

		if (!to)
			return PEN_ENOMEM;
		convert(a->row, to, v.item, p, k, v.add);
		p += k * v.item;
		v.n -= k;
		rc = pen__ad_added(ad, a, k, err);
	}
	return rc;
}

/* n values of rows from `first` on; NULL: their numbers as strings. */
static int put_column(struct pen_ad *ad, const struct pen_ad_column *c,
		      const void *values, uint64_t first, uint64_t n,
		      struct pen_err *err)
{
	char number[32];
	int rc = 0;

	if (!c->values)
		return 0;
	if (c->spec && !c->spec->coded)
		return pen__ad_put(ad, c->values, values, n, err);
	if (c->spec && !c->spec->index)
		return put_integers(ad, c->values,
				    (struct integers){ values, 4, n, 0 }, err);
	for (uint64_t i = 0; !rc && i < n; i++) {
		const char *s = number;

		if (c->spec)
			s = pen__cells_column_text(c->spec, values, i);
		else
			snprintf(number, sizeof(number), "%llu",
				 (unsigned long long)(first + i));
		rc = pen__ad_put_text(ad, c->values, s, err);
	}
	return rc;
}

static int put_names(struct pen_ad *ad, const struct pen_ad_column *c,
		     struct pen_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; c->names && !rc && i < c->spec->nnames; i++)
		rc = pen__ad_put_text(ad, c->names, c->spec->names[i], err);
	return rc;
}

/* Writes everything known before the first row. */
static int put_start(struct pen_ad *ad, struct pen_err *err)
{
	const struct pen_cells_spec *s = ad->w->spec;
	const uint64_t zero = 0;
	int rc = 0;

	for (uint32_t i = 0; !rc && i < s->nobs; i++)
		rc = put_names(ad, &ad->obs[i], err);
	for (uint32_t i = 0; !rc && i <= s->nvar; i++) {
		rc = put_names(ad, &ad->var[i], err);
		if (!rc)
			rc = put_column(ad, &ad->var[i],
					i < s->nvar ? s->var_values[i] : NULL,
					0, s->ncols, err);
	}
	if (!rc && s->sparse)
		rc = pen__ad_put(ad, ad->x.indptr, &zero, 1, err);
	for (uint32_t i = 0; !rc && i < s->ncsr; i++)
		rc = pen__ad_put(ad, ad->csr[i].indptr, &zero, 1, err);
	return rc;
}

int pen__ad_compress(struct pen_ad *ad, const char *packer, const char *name,
		     struct pen_err *err)
{
	const struct pen_packer *p = pen__packer_find(packer);

	if (!p)
		return pen__fail(err, P_NOT_IN_BUILD, "compression",
				 "%s is not part of this build", name);
	if (ad->level && (ad->level < p->least || ad->level > p->most))
		return pen__fail(err, P_BAD_VALUE, "level",
				 "the level of %s must be from %d to %d", name,
				 p->least, p->most);
	ad->packer = p;
	ad->how.level = ad->level ? (int)ad->level : p->usual;
	return 0;
}

int pen__ad_open(struct pen_ad *ad, struct pen_cells_writer *w,
		 struct pen_err *err)
{
	static const struct pen_ad_attrs root = { "anndata", "0.1.0",
						  .shape = NULL };
	const struct pen_cells_spec *s = w->spec;
	struct pen_err own;
	int rc;

	err = err ? err : &own; /* its code is needed below */
	ad->w = w;
	/* one more for an index of numbers, one so that each has a successor */
	ad->obs = pen__calloc((size_t)s->nobs + 2, sizeof(*ad->obs));
	ad->var = pen__calloc((size_t)s->nvar + 2, sizeof(*ad->var));
	ad->dense = pen__calloc((size_t)s->ndense + 1, sizeof(*ad->dense));
	ad->csr = pen__calloc((size_t)s->ncsr + 1, sizeof(*ad->csr));
	if (!ad->obs || !ad->var || !ad->dense || !ad->csr)
		return pen__fail_nomem(err, w->path, sizeof(*ad->obs));
	rc = pen__ad_team(ad, err);
	if (!rc)
		rc = ad->sink->group(ad, "", &root, err);
	if (!rc)
		rc = add_matrices(ad, err);
	if (!rc)
		rc = add_frame(ad, "obs", s->nrows, ad->obs, err);
	if (!rc)
		rc = add_frame(ad, "var", s->ncols, ad->var, err);
	if (!rc)
		rc = put_start(ad, err);
	return rc;
}

/* before: values of the rows before these. */
static int put_lists(struct pen_ad *ad, const struct pen_ad_matrix *m,
		     const struct pen_cells_lists *l, uint64_t nrows,
		     uint64_t before, struct pen_err *err)
{
	const uint64_t n = l->start[nrows];
	int rc = pen__ad_put(ad, m->data, l->values, n, err);

	if (!rc)
		rc = put_integers(ad, m->indices,
				  (struct integers){ l->indices, 4, n, 0 },
				  err);
	return rc ? rc
		  : put_integers(
			    ad, m->indptr,
			    (struct integers){ l->start + 1, 8, nrows, before },
			    err);
}

int pen__ad_rows(struct pen_cells_writer *w, const struct pen_cells_rows *r,
		 struct pen_err *err)
{
	struct pen_ad *ad = w->priv;
	const struct pen_cells_spec *s = w->spec;
	const struct pen_cells_lists x = { r->start, r->indices, r->values };
	int rc = s->sparse ? put_lists(ad, &ad->x, &x, r->n, w->nnz, err)
			   : pen__ad_put(ad, ad->x.data, r->values, r->n, err);

	for (uint32_t i = 0; !rc && i < s->ncsr; i++)
		rc = put_lists(ad, &ad->csr[i], &r->csr[i], r->n, w->csr_nnz[i],
			       err);
	for (uint32_t i = 0; !rc && i <= s->nobs; i++)
		rc = put_column(ad, &ad->obs[i], i < s->nobs ? r->obs[i] : NULL,
				w->nrows, r->n, err);
	for (uint32_t i = 0; !rc && i < s->ndense; i++)
		rc = pen__ad_put(ad, ad->dense[i], r->dense[i], r->n, err);
	return rc;
}

int pen__ad_finish(struct pen_ad *ad, struct pen_err *err)
{
	int rc = 0;

	for (uint32_t i = 0; !rc && i < ad->narrays; i++)
		rc = pen__ad_flush(ad, ad->array[i], err);
	return rc ? rc : pen__ad_drain(ad, err);
}

void pen__ad_close(struct pen_ad *ad)
{
	pen__ad_disband(ad);
	for (uint32_t i = 0; i < ad->narrays; i++) {
		pen__free(ad->array[i]->path);
		pen__free(ad->array[i]->priv);
		pen__buf_fini(&ad->array[i]->part);
		pen__free(ad->array[i]);
	}
	pen__free(ad->array);
	pen__free(ad->obs);
	pen__free(ad->var);
	pen__free(ad->dense);
	pen__free(ad->csr);
}
