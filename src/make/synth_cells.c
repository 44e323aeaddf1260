/*
 * Generates single cells.
 *
 * The number of genes of a cell depends on its first random words only, since
 * writers need sizes in advance; then transcripts are drawn until that many
 * genes have occurred. The occurrences of a gene are its count. The gene of a
 * transcript comes from the markers of the cell type, or from all genes by
 * weight, through an alias table: one random word and two lookups each, for any
 * weights. Genes that occurred are kept as a bitmap, which yields them in
 * order.
 */
#include "make/synth_cells.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/half.h"
#include "base/mem.h"
#include "base/rng.h"
#include "format/cells/cells_write.h"

#define NSIZES 4096
#define NTYPES 20
#define NPLATES 14
#define NDONORS 24
#define NMARKERS 128 /* per type; a power of two */
#define MARKED 15    /* transcripts of markers, out of 256 */
#define NMITO 13
#define SPREAD                                                                 \
	1.85 /* standard deviation of log weights, tuned to real counts */
#define LIBRARY 0.35 /* standard deviation of log genes per cell */
#define PATIENCE 32  /* draws per gene, for a cell with nearly all genes */
#define OWN 32	     /* random words of a row before its transcripts */
#define NOBS 8
#define NVAR 4

/* The use of each random word of a row. */
enum { FOR_SIZE, FOR_TYPE, FOR_DONOR, FOR_PRIMARY };

struct slot {
	uint32_t below; /* of 2^24: this gene, else the other */
	uint32_t other; /* as the bits that differ from this one */
};

struct pen_synth_cells {
	struct pen_synth_cells_setup s;
	struct pen_cells_spec spec;
	uint64_t rows_seed;
	struct slot *slot;
	uint32_t *marker; /* NTYPES x NMARKERS */
	uint8_t *mito, *variable;
	float *mean;
	float *centre;		/* NTYPES x npca */
	uint32_t share[NTYPES]; /* of 2^32, cumulative */
	uint32_t size[NSIZES];
	struct pen_perm barcode;
	char (*gene)[24];
	const char **name; /* of genes */
	int32_t *place;
	const void *var_values[NVAR];
	struct pen_cells_dense_spec pca;
	struct pen_cells_column_spec obs[NOBS], var[NVAR];
};

static const char *const types[NTYPES] = {
	"CD4 T cell",	 "CD14 monocyte",   "CD8 T cell",  "B cell",
	"NK cell",	 "naive T cell",    "fibroblast",  "macrophage",
	"endothelial",	 "CD16 monocyte",   "plasma cell", "epithelial",
	"regulatory T",	 "dendritic cell",  "mast cell",   "platelet",
	"gamma-delta T", "plasmacytoid DC", "erythrocyte", "progenitor",
};
static const char *const plates[NPLATES] = {
	"plate1",  "plate2",  "plate3",	 "plate4",  "plate5",
	"plate6",  "plate7",  "plate8",	 "plate9",  "plate10",
	"plate11", "plate12", "plate13", "plate14",
};
static const char *const donors[NDONORS] = {
	"D01", "D02", "D03", "D04", "D05", "D06", "D07", "D08",
	"D09", "D10", "D11", "D12", "D13", "D14", "D15", "D16",
	"D17", "D18", "D19", "D20", "D21", "D22", "D23", "D24",
};

/* A normally distributed number from two random words. */
static double normal(uint64_t a, uint64_t b)
{
	const double u = ((double)(a >> 11) + 1) * 0x1p-53;
	const double v = (double)(b >> 11) * 0x1p-53;

	return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

/* ---- genes ---- */

/* Files that share a gene use the same id; all share the first ones of a
 * keyed order and the mitochondrial genes. */
static uint64_t gene_id(const struct pen_synth_cells *c, uint64_t j)
{
	const uint64_t u = pen__rng_at(pen__rng_key(c->s.seed, 1), j);

	if (c->mito[j] || (double)(u >> 11) * 0x1p-53 < c->s.overlap)
		return j;
	return c->s.ngenes * (c->s.file + 1) + j;
}

static void name_genes(struct pen_synth_cells *c)
{
	unsigned nmito = 0;

	for (uint64_t j = 0; j < c->s.ngenes; j++) {
		if (c->mito[j])
			snprintf(c->gene[j], sizeof(c->gene[j]), "MT-%02u",
				 ++nmito);
		else
			snprintf(c->gene[j], sizeof(c->gene[j]), "ENSG%011llu",
				 (unsigned long long)gene_id(c, j));
		c->name[j] = c->gene[j];
		c->place[j] = (int32_t)j;
	}
}

static double weigh(const struct pen_synth_cells *c, double *w)
{
	const uint64_t key = pen__rng_key(c->s.seed, 2);
	double sum = 0, mito;

	for (uint64_t j = 0; j < c->s.ngenes; j++) {
		const uint64_t id = gene_id(c, j);

		w[j] = exp(SPREAD * normal(pen__rng_at(key, 2 * id),
					   pen__rng_at(key, 2 * id + 1)));
		sum += w[j];
	}
	mito = sum * 0.04 / NMITO;
	for (uint64_t j = 0; j < c->s.ngenes; j++)
		if (c->mito[j]) {
			sum += mito - w[j];
			w[j] = mito;
		}
	return sum;
}

/* Vose's alias method: entries below the mean are filled up by those above. */
static int make_slots(struct pen_synth_cells *c, double *w, double sum,
		      struct pen_err *err)
{
	const uint64_t n = c->s.ngenes;
	uint32_t *list = pen__alloc((size_t)n, sizeof(*list));
	uint64_t nlow = 0, high = n;

	if (!list)
		return pen__fail_nomem(err, "cells", (size_t)n * 4);
	for (uint64_t j = 0; j < n; j++) {
		w[j] *= (double)n / sum;
		c->slot[j] = (struct slot){ 1 << 24, 0 };
		if (w[j] < 1)
			list[nlow++] = (uint32_t)j;
		else
			list[--high] = (uint32_t)j;
	}
	while (nlow && high < n) {
		const uint32_t low = list[--nlow], big = list[high];

		c->slot[low].below = (uint32_t)(w[low] * 0x1p24);
		c->slot[low].other = low ^ big;
		w[big] -= 1 - w[low];
		if (w[big] < 1) {
			high++;
			list[nlow++] = big;
		}
	}
	pen__free(list);
	return 0;
}

static void choose_markers(struct pen_synth_cells *c)
{
	struct pen_rng r = pen__rng(c->s.seed, 3);

	for (uint32_t i = 0; i < NTYPES * NMARKERS; i++) {
		c->marker[i] = (uint32_t)pen__rng_below(&r, c->s.ngenes);
		c->variable[c->marker[i]] = 1;
	}
}

static int make_genes(struct pen_synth_cells *c, struct pen_err *err)
{
	const uint64_t n = c->s.ngenes;
	const double per_cell = 1.55 * c->s.density * (double)n;
	double *w = pen__alloc((size_t)n, sizeof(*w)), sum;
	int rc;

	if (!w)
		return pen__fail_nomem(err, "cells", (size_t)n * 8);
	for (uint64_t i = 0; n >= 4 * NMITO && i < NMITO; i++)
		c->mito[(2 * i + 1) * n / (2 * NMITO)] = 1;
	name_genes(c);
	choose_markers(c);
	sum = weigh(c, w);
	for (uint64_t j = 0; j < n; j++)
		c->mean[j] =
			(float)(w[j] / sum * per_cell * (256 - MARKED) / 256);
	rc = make_slots(c, w, sum, err);
	pen__free(w);
	return rc;
}

/* ---- description of a file ---- */

static void describe(struct pen_synth_cells *c)
{
	const struct pen_cells_column_spec obs[NOBS] = {
		{ .name = "barcode", .coded = true, .index = true },
		{ .name = "cell_type",
		  .coded = true,
		  .nnames = NTYPES,
		  .names = types },
		{ .name = "plate",
		  .coded = true,
		  .nnames = NPLATES,
		  .names = plates },
		{ .name = "donor",
		  .coded = true,
		  .nnames = NDONORS,
		  .names = donors },
		{ .name = "n_genes", .dtype = PEN_I32 },
		{ .name = "n_counts", .dtype = PEN_F32 },
		{ .name = "pct_mito", .dtype = PEN_F32 },
		{ .name = "is_primary", .dtype = PEN_BOOL },
	};
	const struct pen_cells_column_spec var[NVAR] = {
		{ .name = "gene",
		  .coded = true,
		  .index = true,
		  .nnames = (uint32_t)c->s.ngenes,
		  .names = c->name },
		{ .name = "highly_variable", .dtype = PEN_BOOL },
		{ .name = "mean", .dtype = PEN_F32 },
		{ .name = "mito", .dtype = PEN_BOOL },
	};

	memcpy(c->obs, obs, sizeof(obs));
	memcpy(c->var, var, sizeof(var));
	c->var_values[0] = c->place;
	c->var_values[1] = c->variable;
	c->var_values[2] = c->mean;
	c->var_values[3] = c->mito;
	c->pca = (struct pen_cells_dense_spec){ "obsm/X_pca", PEN_F32,
						c->s.npca };
	c->spec = (struct pen_cells_spec){ .nrows = c->s.ncells,
					   .ncols = c->s.ngenes,
					   .sparse = !c->s.dense,
					   .dtype = c->s.dtype,
					   .indices = PEN_I32,
					   .nobs = NOBS,
					   .nvar = NVAR,
					   .ndense = c->s.npca != 0,
					   .obs = c->obs,
					   .var = c->var,
					   .var_values = c->var_values,
					   .dense = &c->pca };
}

/* The quantile p of the normal distribution. */
static double quantile(double p)
{
	double lo = -8, hi = 8;

	while (hi - lo > 1e-9) {
		const double mid = (lo + hi) / 2;

		if (erfc(-mid / sqrt(2)) / 2 < p)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

/* Equally likely numbers of genes per cell. */
static void make_sizes(struct pen_synth_cells *c)
{
	const double most = (double)c->s.ngenes;

	for (unsigned i = 0; i < NSIZES; i++) {
		const double z = quantile((i + 0.5) / NSIZES);
		/* exp() raises the mean by half the variance */
		const double n = c->s.density * most *
				 exp(LIBRARY * z - LIBRARY * LIBRARY / 2);

		c->size[i] = (uint32_t)(n < 1 ? 1 : n > most ? most : n + 0.5);
	}
}

/* The number of genes of a cell, from a table, since it is needed for all
 * cells in advance. */
static uint32_t size_of(const struct pen_synth_cells *c, uint64_t key)
{
	return c->size[pen__rng_at(key, FOR_SIZE) % NSIZES];
}

static int check_setup(const struct pen_synth_cells_setup *s,
		       struct pen_err *err)
{
	if (!s->ngenes || s->ngenes > (uint64_t)1 << 24)
		return pen__fail(err, P_BAD_VALUE, "genes",
				 "must be 1 to 16,777,216");
	if (!(s->density > 0 && s->density <= 0.5))
		return pen__fail(err, P_BAD_VALUE, "density",
				 "must be above 0 and at most 0.5");
	if (!(s->overlap >= 0 && s->overlap <= 1))
		return pen__fail(err, P_BAD_VALUE, "overlap", "must be 0 to 1");
	if (s->ncells > (uint64_t)1 << 32)
		return pen__fail(
			err, P_BAD_VALUE, "samples",
			"a file has at most 2^32 barcodes; make several files");
	if (s->dtype > PEN_F64 || s->dtype == PEN_BOOL)
		return pen__fail(err, P_BAD_VALUE, "dtype",
				 "counts cannot be of type %s; use a float or "
				 "an integer type",
				 pen_dtype_name(s->dtype));
	return 0;
}

static bool make_room(struct pen_synth_cells *c)
{
	const size_t n = (size_t)c->s.ngenes;

	c->slot = pen__calloc(n, sizeof(*c->slot));
	c->marker = pen__calloc(NTYPES * NMARKERS, sizeof(*c->marker));
	c->mito = pen__calloc(n, 1);
	c->variable = pen__calloc(n, 1);
	c->mean = pen__calloc(n, sizeof(*c->mean));
	c->gene = pen__calloc(n, sizeof(*c->gene));
	c->name = pen__calloc(n, sizeof(*c->name));
	c->place = pen__calloc(n, sizeof(*c->place));
	c->centre =
		pen__calloc((size_t)c->s.npca * NTYPES + 1, sizeof(*c->centre));
	return c->slot && c->marker && c->mito && c->variable && c->mean &&
	       c->gene && c->name && c->place && c->centre;
}

/* A few types have most of the cells. */
static void share_types(struct pen_synth_cells *c)
{
	double all = 0, sum = 0;

	for (unsigned t = 0; t < NTYPES; t++)
		all += 1.0 / (t + 1);
	for (unsigned t = 0; t < NTYPES; t++) {
		sum += 1.0 / (t + 1);
		c->share[t] = (uint32_t)(sum / all * 4294967295.0);
	}
	for (uint32_t i = 0; i < NTYPES * c->s.npca; i++) {
		const uint64_t key = pen__rng_key(c->s.seed, 4);

		c->centre[i] = (float)(5 * normal(pen__rng_at(key, 2 * i),
						  pen__rng_at(key, 2 * i + 1)));
	}
}

int pen__synth_cells_new(struct pen_synth_cells **out,
			 const struct pen_synth_cells_setup *s,
			 struct pen_err *err)
{
	struct pen_synth_cells *c;
	int rc = check_setup(s, err);

	*out = NULL;
	if (rc)
		return rc;
	c = pen__calloc(1, sizeof(*c));
	if (!c)
		return pen__fail_nomem(err, "cells", sizeof(*c));
	c->s = *s;
	c->rows_seed = pen__rng_key(s->seed, s->file + 16);
	if (!make_room(c)) {
		rc = pen__fail_nomem(err, "cells", (size_t)s->ngenes * 64);
		goto fail;
	}
	rc = make_genes(c, err);
	if (rc)
		goto fail;
	share_types(c);
	make_sizes(c);
	describe(c);
	pen__perm_init(&c->barcode, (uint64_t)1 << 32, s->seed, s->file);
	for (uint64_t i = 0; i < s->ncells; i++)
		c->spec.nnz += size_of(c, pen__rng_key(c->rows_seed, i));
	*out = c;
	return 0;
fail:
	pen__synth_cells_free(c);
	return rc;
}

void pen__synth_cells_free(struct pen_synth_cells *c)
{
	if (!c)
		return;
	pen__free(c->slot);
	pen__free(c->marker);
	pen__free(c->mito);
	pen__free(c->variable);
	pen__free(c->mean);
	pen__free(c->gene);
	pen__free(c->name);
	pen__free(c->place);
	pen__free(c->centre);
	pen__free(c);
}

const struct pen_cells_spec *
pen__synth_cells_spec(const struct pen_synth_cells *c)
{
	return &c->spec;
}

/* ---- rows ---- */

struct pen_synth_rows {
	const struct pen_synth_cells *c;
	struct pen_cells_rows r;
	uint64_t *start, *met; /* met: one bit per gene */
	uint16_t *times;       /* occurrences of each gene */
	uint32_t *indices;
	uint16_t *counts;
	void *values;
	uint64_t room; /* values */
	uint32_t most; /* rows */
	char (*text)[32];
	const char **barcode;
	int32_t *type, *plate, *donor, *ngenes;
	float *ncounts, *mito, *pca;
	bool *primary;
	const void *obs[NOBS], *dense[1];
};

int pen__synth_rows_new(struct pen_synth_rows **out,
			const struct pen_synth_cells *c, uint32_t most,
			struct pen_err *err)
{
	struct pen_synth_rows *b = pen__calloc(1, sizeof(*b));
	const size_t n = (size_t)most + 1, g = (size_t)c->s.ngenes;

	*out = b;
	if (!b)
		return pen__fail_nomem(err, "cells", sizeof(*b));
	b->c = c;
	b->most = most;
	b->start = pen__calloc(n, sizeof(*b->start));
	b->met = pen__calloc(g / 64 + 1, sizeof(*b->met));
	b->times = pen__calloc(g, sizeof(*b->times));
	b->text = pen__calloc(n, sizeof(*b->text));
	b->barcode = pen__calloc(n, sizeof(*b->barcode));
	b->type = pen__calloc(n * 4, sizeof(*b->type));
	b->ncounts = pen__calloc(n * 2, sizeof(*b->ncounts));
	b->pca = pen__calloc(n, sizeof(*b->pca) * (c->s.npca + 1));
	b->primary = pen__calloc(n, sizeof(*b->primary));
	if (!b->start || !b->met || !b->times || !b->text || !b->barcode ||
	    !b->type || !b->ncounts || !b->pca || !b->primary) {
		pen__synth_rows_free(b);
		*out = NULL;
		return pen__fail_nomem(err, "cells", n * 128 + g * 2);
	}
	b->plate = b->type + n;
	b->donor = b->plate + n;
	b->ngenes = b->donor + n;
	b->mito = b->ncounts + n;
	b->obs[0] = b->barcode;
	b->obs[1] = b->type;
	b->obs[2] = b->plate;
	b->obs[3] = b->donor;
	b->obs[4] = b->ngenes;
	b->obs[5] = b->ncounts;
	b->obs[6] = b->mito;
	b->obs[7] = b->primary;
	b->dense[0] = b->pca;
	return 0;
}

void pen__synth_rows_free(struct pen_synth_rows *b)
{
	if (!b)
		return;
	pen__free(b->start);
	pen__free(b->met);
	pen__free(b->times);
	pen__free(b->indices);
	pen__free(b->counts);
	pen__free(b->values);
	pen__free(b->text);
	pen__free(b->barcode);
	pen__free(b->type);
	pen__free(b->ncounts);
	pen__free(b->pca);
	pen__free(b->primary);
	pen__free(b);
}

/* Allocates room for n values in all their forms. */
static bool rows_reserve(struct pen_synth_rows *b, uint64_t n)
{
	const size_t item = pen_dtype_size(b->c->s.dtype);
	const uint64_t out = b->c->s.dense ? b->most * b->c->s.ngenes
					   : n + n / 4;

	if (n <= b->room)
		return true;
	pen__free(b->indices);
	pen__free(b->counts);
	pen__free(b->values);
	b->room = n + n / 4;
	b->indices = pen__alloc((size_t)b->room, sizeof(*b->indices));
	b->counts = pen__alloc((size_t)b->room, sizeof(*b->counts));
	b->values = pen__alloc((size_t)out, item);
	if (b->indices && b->counts && b->values)
		return true;
	b->room = 0;
	return false;
}

static void name_row(const struct pen_synth_cells *c, uint64_t row, char *to)
{
	uint64_t v = pen__perm_at(&c->barcode, row);

	for (unsigned i = 0; i < 16; i++, v >>= 2)
		to[i] = "ACGT"[v & 3];
	snprintf(to + 16, 16, "-%u", (unsigned)(c->s.file + 1));
}

static unsigned type_of(const struct pen_synth_cells *c, uint64_t key)
{
	const uint32_t u = (uint32_t)(pen__rng_at(key, FOR_TYPE) >> 32);
	unsigned t = 0;

	while (t < NTYPES - 1 && u >= c->share[t])
		t++;
	return t;
}

static void make_obs(struct pen_synth_rows *b, uint32_t k, uint64_t row,
		     uint64_t key)
{
	const struct pen_synth_cells *c = b->c;
	const uint32_t npca = c->s.npca;
	const uint64_t noise = pen__rng_key(key, 1);

	name_row(c, row, b->text[k]);
	b->barcode[k] = b->text[k];
	b->type[k] = (int32_t)type_of(c, key);
	b->plate[k] = (int32_t)((double)row / (double)c->s.ncells * NPLATES);
	b->donor[k] = (int32_t)((b->plate[k] * 3 +
				 (pen__rng_at(key, FOR_DONOR) >> 62)) %
				NDONORS);
	b->primary[k] = pen__rng_at(key, FOR_PRIMARY) >> 60 != 0;
	for (uint32_t i = 0; i < npca; i++) {
		const uint64_t u = pen__rng_at(noise, i);
		const uint64_t z = (u & 0xffff) + (u >> 16 & 0xffff) +
				   (u >> 32 & 0xffff) + (u >> 48);

		b->pca[(size_t)k * npca + i] =
			c->centre[(uint32_t)b->type[k] * npca + i] +
			(float)(((double)z - 131070) /
				37837); /* standard deviation 1 */
	}
}

/* Draws until `left` genes have occurred, and counts occurrences. */
static void draw(struct pen_synth_rows *b, unsigned type, uint64_t key,
		 uint32_t left)
{
	const struct pen_synth_cells *c = b->c;
	const uint32_t *marker = c->marker + (size_t)type * NMARKERS;
	const uint64_t n = c->s.ngenes;
	uint64_t i = OWN, end = OWN + (uint64_t)left * PATIENCE + 1024;

	while (left && i < end) {
		const uint64_t u = pen__rng_at(key, i++);
		const uint32_t j = (uint32_t)((u >> 32) * n >> 32);
		const uint32_t part = (uint32_t)u >> 8;
		const uint32_t m = marker[part % NMARKERS];
		/* masks, because the branches are unpredictable */
		const uint32_t not_this = (part < c->slot[j].below) - 1u;
		const uint32_t marked = ((u & 255) >= MARKED) - 1u;
		uint32_t g = j ^ (c->slot[j].other & not_this);

		g ^= (g ^ m) & marked;
		left -= b->times[g] == 0;
		b->times[g] =
			(uint16_t)(b->times[g] + (b->times[g] != UINT16_MAX));
		b->met[g / 64] |= (uint64_t)1 << (g % 64);
	}
	/* the last of nearly all genes are rare: take them in order */
	for (uint32_t g = 0; left && g < n; g++) {
		left -= b->times[g] == 0;
		b->times[g] = (uint16_t)(b->times[g] + (b->times[g] == 0));
		b->met[g / 64] |= (uint64_t)1 << (g % 64);
	}
}

/* Collects the genes of a row in order and clears the bitmap. */
static void collect(struct pen_synth_rows *b, uint32_t k, uint64_t at)
{
	const struct pen_synth_cells *c = b->c;
	uint32_t all = 0, mito = 0;

	for (uint64_t w = 0; w * 64 < c->s.ngenes; w++) {
		for (uint64_t bits = b->met[w]; bits; bits &= bits - 1) {
			const uint32_t g = (uint32_t)(w * 64) +
					   (uint32_t)__builtin_ctzll(bits);
			const uint16_t v = b->times[g];

			b->indices[at] = g;
			b->counts[at++] = v;
			all += v;
			mito += c->mito[g] ? v : 0;
			b->times[g] = 0;
		}
		b->met[w] = 0;
	}
	b->ncounts[k] = (float)all;
	b->mito[k] = all ? 100 * (float)mito / (float)all : 0;
}

#define FILL(type, most)                                                       \
	for (uint64_t i = 0; i < n; i++)                                       \
	((type *)to)[i] = (type)(from[i] < (most) ? from[i] : (most))

/* Converts counts to the dtype of the file, with saturation. */
static void convert(enum pen_dtype dtype, const uint16_t *from, uint64_t n,
		    void *to)
{
	switch (dtype) {
	case PEN_F32:
		FILL(float, UINT16_MAX);
		break;
	case PEN_F64:
		FILL(double, UINT16_MAX);
		break;
	case PEN_F16:
		for (uint64_t i = 0; i < n; i++)
			((uint16_t *)to)[i] = pen__double_to_half(
				from[i] < 2048 ? from[i] : 2048);
		break;
	case PEN_I8:
		FILL(int8_t, INT8_MAX);
		break;
	case PEN_U8:
		FILL(uint8_t, UINT8_MAX);
		break;
	case PEN_I16:
		FILL(int16_t, INT16_MAX);
		break;
	case PEN_U16:
		FILL(uint16_t, UINT16_MAX);
		break;
	case PEN_I32:
	case PEN_U32:
		FILL(uint32_t, UINT16_MAX);
		break;
	default:
		FILL(uint64_t, UINT16_MAX);
	}
}

/* Row k including its zeros; `times` is all 0 between rows and is reused. */
static void spread(struct pen_synth_rows *b, uint32_t k)
{
	const struct pen_synth_cells *c = b->c;
	const size_t row = pen_dtype_size(c->s.dtype) * (size_t)c->s.ngenes;

	for (uint64_t i = b->start[k]; i < b->start[k + 1]; i++)
		b->times[b->indices[i]] = b->counts[i];
	convert(c->s.dtype, b->times, c->s.ngenes,
		(uint8_t *)b->values + k * row);
	for (uint64_t i = b->start[k]; i < b->start[k + 1]; i++)
		b->times[b->indices[i]] = 0;
}

const struct pen_cells_rows *pen__synth_rows_make(struct pen_synth_rows *b,
						  uint64_t first, uint32_t n)
{
	const struct pen_synth_cells *c = b->c;

	b->start[0] = 0;
	for (uint32_t k = 0; k < n; k++)
		b->start[k + 1] =
			b->start[k] +
			size_of(c, pen__rng_key(c->rows_seed, first + k));
	if (!rows_reserve(b, b->start[n]))
		return NULL;
	for (uint32_t k = 0; k < n; k++) {
		const uint64_t key = pen__rng_key(c->rows_seed, first + k);

		b->ngenes[k] = (int32_t)(b->start[k + 1] - b->start[k]);
		make_obs(b, k, first + k, key);
		draw(b, (unsigned)b->type[k], key, (uint32_t)b->ngenes[k]);
		collect(b, k, b->start[k]);
		if (c->s.dense)
			spread(b, k);
	}
	if (!c->s.dense)
		convert(c->s.dtype, b->counts, b->start[n], b->values);
	b->r = (struct pen_cells_rows){ n,	b->start, b->indices, b->values,
					b->obs, b->dense, NULL };
	return &b->r;
}
