/* Single cells for tests of writers: their values, and writing them. */
#ifndef CELLS_MADE_H
#define CELLS_MADE_H

#include "base/bytes.h"
#include "base/mem.h"
#include "codec/pack.h"
#include "format/cells/cells_write.h"
#include "formats.h"

#define NVAR 2
#define NOBS 7
#define MANY 300

/* The same values as in check_cells.py. */
struct cells {
	struct pen_cells_spec spec;
	struct pen_cells_column_spec obs[NOBS], var[NVAR];
	struct pen_cells_dense_spec dense[2];
	const void *var_values[NVAR];
	char (*text)[24];
	const char **gene;
	int32_t *place;
	double *mean;
};

static const char *const types[] = { "B cell", "T cell",
				     "Zelle \xc3\xa4\xc3\xb6",
				     "naive, \"mixed\"", "" };

static const char *many[MANY]; /* too many for int8 */
static char many_text[MANY][16];

static inline uint64_t in_row(const struct cells *c, uint64_t i)
{
	uint64_t n = 0;

	while (n < i * 7 % 40 && i % 20 + n * 7 < c->spec.ncols)
		n++;
	return n;
}

static inline void cells_columns(struct cells *c)
{
	static const struct pen_cells_column_spec obs[NOBS] = {
		{ .name = "barcode", .coded = true, .index = true },
		{ .name = "cell_type",
		  .coded = true,
		  .ordered = true,
		  .nnames = 5,
		  .names = types },
		{ .name = "n_counts", .dtype = PEN_I64 },
		{ .name = "frac", .dtype = PEN_F32 },
		{ .name = "is_primary", .dtype = PEN_BOOL },
		{ .name = "kl\xc3\xa4in \"\xf0\x9f\xa7\xac\"",
		  .dtype = PEN_U8 },
		{ .name = "many",
		  .coded = true,
		  .nnames = MANY,
		  .names = many },
	};

	for (int i = 0; i < MANY; i++) {
		snprintf(many_text[i], sizeof(many_text[i]), "n%03d", i % 1000);
		many[i] = many_text[i];
	}
	memcpy(c->obs, obs, sizeof(obs));
	c->var[0] =
		(struct pen_cells_column_spec){ .name = "gene",
						.coded = true,
						.index = true,
						.nnames =
							(uint32_t)c->spec.ncols,
						.names = c->gene };
	c->var[1] = (struct pen_cells_column_spec){ .name = "mean",
						    .dtype = PEN_F64 };
	c->dense[0] = (struct pen_cells_dense_spec){ "obsm/X_pca", PEN_F32, 7 };
	c->dense[1] = (struct pen_cells_dense_spec){ "layers/scaled", PEN_F64,
						     c->spec.ncols };
	c->var_values[0] = c->place;
	c->var_values[1] = c->mean;
	c->spec.obs = c->obs;
	c->spec.var = c->var;
	c->spec.dense = c->dense;
	c->spec.var_values = c->var_values;
	c->spec.nobs = NOBS;
	c->spec.nvar = NVAR;
	c->spec.ndense = 2;
}

static inline void cells_init(struct cells *c, uint64_t n, uint64_t m,
			      bool full)
{
	*c = (struct cells){ .spec = { .nrows = n, .ncols = m } };
	c->spec.sparse = true;
	c->spec.dtype = PEN_F32;
	c->spec.indices = PEN_I32;
	for (uint64_t i = 0; i < n; i++)
		c->spec.nnz += in_row(c, i);
	c->text = calloc(m + 1, sizeof(*c->text));
	c->gene = calloc(m + 1, sizeof(*c->gene));
	c->place = calloc(m + 1, sizeof(*c->place));
	c->mean = calloc(m + 1, sizeof(*c->mean));
	for (uint64_t j = 0; j < m; j++) {
		snprintf(c->text[j], sizeof(c->text[j]), "G%d", (int)j);
		c->gene[j] = c->text[j];
		c->place[j] = (int32_t)(m - 1 - j);
		c->mean[j] = (double)j / 8;
	}
	if (full)
		cells_columns(c);
}

static inline void cells_fini(struct cells *c)
{
	free(c->text);
	free(c->gene);
	free(c->place);
	free(c->mean);
}

static inline void put_number(void *to, uint64_t i, enum pen_dtype t,
			      unsigned v)
{
	switch (t) {
	case PEN_F32:
		((float *)to)[i] = (float)v;
		break;
	case PEN_F64:
		((double *)to)[i] = v;
		break;
	case PEN_U16:
		((uint16_t *)to)[i] = (uint16_t)v;
		break;
	default:
		((int64_t *)to)[i] = v;
	}
}

/* Rows [first, first + n), in their own memory. */
struct some {
	uint64_t start[65];
	uint32_t index[64 * 40];
	int64_t values[64 * 512]; /* the widest type */
	char text[64][24];
	const char *name[64];
	int32_t type[64], many[64];
	int64_t counts[64];
	float frac[64], pca[64 * 7];
	bool primary[64];
	uint8_t small[64];
	double scaled[64 * 512];
	const void *obs[NOBS], *dense[2];
	struct pen_cells_rows r;
};

static inline void some_obs(const struct cells *c, struct some *s, uint64_t k,
			    uint64_t i)
{
	snprintf(s->text[k], sizeof(s->text[k]), "cell-%d", (int)i);
	s->name[k] = s->text[k];
	s->type[k] = i % 11 ? (int32_t)(i % 5) : -1;
	s->counts[k] = (int64_t)i * 1000003 - 5;
	s->frac[k] = (float)(i % 64) / 64;
	s->primary[k] = i % 3 == 0;
	s->small[k] = (uint8_t)(i % 100);
	s->many[k] = (int32_t)(i * 13 % MANY);
	for (uint64_t j = 0; j < 7; j++)
		s->pca[k * 7 + j] = (float)((i * 7 + j) % 1009);
	for (uint64_t j = 0; j < c->spec.ncols; j++)
		s->scaled[k * c->spec.ncols + j] =
			(double)((i * c->spec.ncols + j) % 251);
}

static inline void some_fill(const struct cells *c, struct some *s,
			     uint64_t first, uint64_t n)
{
	const uint64_t m = c->spec.ncols;

	memset(s->values, 0, sizeof(s->values));
	s->start[0] = 0;
	for (uint64_t k = 0; k < n; k++) {
		const uint64_t i = first + k, has = in_row(c, i);

		for (uint64_t j = 0; j < has; j++) {
			const uint64_t at = s->start[k] + j;
			const uint32_t gene = (uint32_t)(i % 20 + j * 7);

			s->index[at] = gene;
			put_number(s->values,
				   c->spec.sparse ? at : k * m + gene,
				   c->spec.dtype,
				   (unsigned)((i * 31 + j * 17) % 97 + 1));
		}
		s->start[k + 1] = s->start[k] + has;
		some_obs(c, s, k, i);
	}
	s->obs[0] = s->name;
	s->obs[1] = s->type;
	s->obs[2] = s->counts;
	s->obs[3] = s->frac;
	s->obs[4] = s->primary;
	s->obs[5] = s->small;
	s->obs[6] = s->many;
	s->dense[0] = s->pca;
	s->dense[1] = s->scaled;
	s->r = (struct pen_cells_rows){ n,	s->start, s->index, s->values,
					s->obs, s->dense, NULL };
}

/* "a=b,c=d" */
static inline size_t split(char *text, struct pen_opts_kv *kv, size_t cap)
{
	size_t n = 0;
	char *p;

	while ((p = strsep(&text, ",")) && n < cap) {
		char *eq = strchr(p, '=');

		if (!eq)
			continue;
		*eq = '\0';
		kv[n++] = (struct pen_opts_kv){ p, eq + 1 };
	}
	return n;
}

static inline int write_cells(const struct cells *c, const char *path,
			      const char *settings, uint64_t step,
			      struct pen_err *err)
{
	struct pen_cells_writer *w;
	struct some *s = calloc(1, sizeof(*s));
	struct pen_opts_kv kv[8];
	char text[256];
	size_t n;
	int rc;

	snprintf(text, sizeof(text), "%s", settings);
	n = split(text, kv, 8);
	rc = pen__cells_writer_open(&w, pen__cells_writer_for(path), path,
				    &c->spec, (struct pen_opts){ kv, n }, err);
	for (uint64_t i = 0; !rc && i < c->spec.nrows; i += step) {
		some_fill(c, s, i,
			  i + step < c->spec.nrows ? step : c->spec.nrows - i);
		rc = pen__cells_writer_rows(w, &s->r, err);
	}
	if (!rc)
		rc = pen__cells_writer_finish(w, err);
	pen__cells_writer_close(w);
	free(s);
	return rc;
}

/* Whether this build supports the format and its settings. */
static inline bool can(const char *name, const char *settings)
{
	const char *by = strstr(settings, "compression=");

	if (!pen__cells_writer_for(name))
		return false;
	return !by || ((strncmp(by + 12, "zstd", 4) != 0 ||
			pen__packer_find("zstd")) &&
		       (strncmp(by + 12, "blosc", 5) != 0 ||
			pen__packer_find("blosc")));
}

#endif
