/*
 * Single cells in any order: files that data/make_FORMAT.py makes, and a case
 * of them loaded twice with a sampler, every sample compared by its number.
 */
#ifndef ORDERS_H
#define ORDERS_H

#include "formats.h"

static inline void orders_make(const char *format, const char *needs)
{
	const char *source = getenv("SOURCE");
	char root[PATH_MAX] = __FILE__, archive[PATH_MAX + 64], script[32];

	for (int i = 0; i < 2; i++)
		if (strrchr(root, '/'))
			*strrchr(root, '/') = '\0';
	snprintf(archive, sizeof(archive), "'%s/../shared/data/anndata'",
		 source ? source : root);
	snprintf(script, sizeof(script), "make_%s.py", format);
	formats_make_with(script, format, "", archive, needs);
}

/* All of a case, by sample and field. */
struct orders_wants {
	struct formats_want *w;
	uint8_t *mem;
	uint64_t n;
	uint32_t nfields;
};

static inline void orders_read(const char *name, uint32_t nfields,
			       struct orders_wants *ws)
{
	struct formats_want w;
	struct pen_bytes in;
	char file[160];
	size_t n, cap = 0;

	*ws = (struct orders_wants){ .nfields = nfields };
	snprintf(file, sizeof(file), "%s.want", name);
	ws->mem = golden_read(file, &n);
	in = pen__bytes(ws->mem, n);
	for (size_t k = 0; formats_next(&in, &w); k++) {
		if (k == cap) {
			cap = cap ? cap * 2 : 1024;
			ws->w = realloc(ws->w, cap * sizeof(w));
		}
		ws->w[k] = w;
		ws->n = (k + 1) / nfields;
	}
}

static inline void orders_load(const char *name, const char *settings,
			       const char *how)
{
	const uint32_t nfields = strstr(settings, "csr") ? 3 : 2;
	struct pen_err err;
	struct pen_loader *l;
	struct pen_batch *b;
	struct orders_wants ws;
	uint64_t seen = 0, ends = 0;
	bool ok = true;
	int rc;

	orders_read(name, nfields, &ws);
	l = eng_open(&err, "%s/%s batch_size=50 epochs=2 %s", golden_dir,
		     settings, how);
	if (!CHECK(l != NULL))
		fprintf(stderr, "  %s: %s: %s\n", how, err.where, err.msg);
	while (l && ok && ends < 2) {
		rc = pen_loader_next(l, &b, &err);
		if (rc == PEN_END) {
			ends++;
			continue;
		}
		ok = CHECK_EQ(rc, 0);
		for (uint32_t i = 0; ok && i < b->nsamples; i++, seen++)
			for (uint32_t f = 0; ok && f < nfields; f++)
				ok = formats_row(
					b, i, &ws.w[b->ids[i] * nfields + f]);
		if (!rc)
			pen_batch_unref(b);
	}
	if (!ok)
		fprintf(stderr, "  %s %s: %s: %s\n", name, how, err.where,
			err.msg);
	CHECK_EQ(seen, 2 * ws.n);
	pen_loader_close(l);
	free(ws.w);
	free(ws.mem);
}

#endif
