/*
 * h5ad against anndata and h5py: every layout of a matrix and its obs, value by
 * value, through the loader; any order, store and number of threads; the output
 * of inspect; invalid files, and files damaged at every position.
 */
#include "format/cells/cells.h"
#include "orders.h"

/* ---- orders ---- */

static void test_orders(void)
{
	static const char *const samplers[] = {
		"sampler=block sampler.chunk=16 sampler.chunks=32",
		"sampler=shuffle", "sampler=sequential"
	};
	static const char *const stores[] = { "posix", "mmap", "uring" };
	static const char *const cases[][2] = {
		{ "big-None", "big-None.h5ad format.obs=label" },
		{ "big-gzip", "big-gzip.h5ad format.obs=label" },
		{ "big-None-csr",
		  "big-None.h5ad format.obs=label format.output=csr" },
		{ "big-gzip-csr",
		  "big-gzip.h5ad format.obs=label format.output=csr" },
		{ "big-None-some",
		  "big-None.h5ad format.obs=label format.output=csr "
		  "format.genes=first:50" },
		{ "big-gzip-some",
		  "big-gzip.h5ad format.obs=label format.output=csr "
		  "format.genes=first:50" },
	};
	char how[160];

	for (size_t c = 0; c < 6; c++)
		for (size_t s = 0; s < 3; s++)
			for (size_t k = 0; k < 3; k++) {
				if (!pen__store_find(stores[s]))
					continue;
				snprintf(how, sizeof(how),
					 "%s store=%s threads=%d", samplers[k],
					 stores[s], (c + k + s) % 2 ? 1 : 8);
				orders_load(cases[c][0], cases[c][1], how);
			}
	orders_load(cases[1][0], cases[1][1],
		    "sampler=block sampler.chunk=16 threads=1 memory=4MB");
	orders_load(cases[5][0], cases[5][1], "sampler=shuffle shapes=padded");
}

/* No more is read than needed. */
static void test_reads(void)
{
	static const char *const how[] = { "big-None.h5ad sampler=shuffle",
					   "big-gzip.h5ad sampler=sequential" };

	for (int i = 0; i < 2; i++) {
		struct pen_loader *l = eng_open(NULL,
						"%s/%s batch_size=64 threads=2 "
						"store=posix epochs=1",
						golden_dir, how[i]);
		struct pen_stats st;

		CHECK_EQ(eng_run(l, 1, NULL, NULL), PEN_END);
		pen_loader_stats(l, &st, sizeof(st));
		/* 60,000 values and their genes, 4 bytes each; some pages */
		CHECK(st.read_bytes <= (i ? 300000u : 480000u));
		CHECK(i || st.read_bytes == 480000u);
		pen_loader_close(l);
	}
}

/* Genes are looked up in the cached index, with the current list. */
static void test_kept(void)
{
	static const char *const lists[] = { "gene3\ngene1\n", "gene5\n",
					     "gene5\n" };
	char path[160];

	snprintf(path, sizeof(path), "%s/changing.txt", golden_dir);
	for (int i = 0; i < 3; i++) {
		FILE *f = fopen(path, "w");
		struct pen_loader *l;
		struct pen_err err;

		CHECK(f && fputs(lists[i], f) >= 0 && fclose(f) == 0);
		l = eng_open(&err,
			     "%s/anndata-gzip.h5ad format.genes=@%s "
			     "format.obs=tissue batch_size=7 "
			     "index_cache=%s/kept",
			     golden_dir, path, golden_dir);
		if (!CHECK(l != NULL))
			break;
		CHECK_EQ(pen_dataset_field(pen_loader_dataset(l), 0)->shape[0],
			 i ? 1 : 2);
		CHECK_EQ(eng_run(l, 1, NULL, &err), PEN_END);
		pen_loader_close(l);
	}
}

/* ---- labels ---- */

static void test_labels(void)
{
	static const char *const kinds[] = { "u", "v", "w0", "w1", "w2" };
	struct pen_loader *l = eng_open(NULL,
					"%s/joins format.join=inner "
					"format.obs=n,kind format.source=true",
					golden_dir);
	const struct pen_dataset *ds = pen_loader_dataset(l);
	char buf[200], small[2];

	CHECK_STR(pen_dataset_field(ds, 2)->name, "kind");
	CHECK_EQ(pen_dataset_nlabels(ds, 0), 0);
	CHECK_EQ(pen_dataset_nlabels(ds, 1), 0);
	CHECK_EQ(pen_dataset_nlabels(ds, 2), 5);
	CHECK_EQ(pen_dataset_nlabels(ds, 3), 3);
	CHECK_EQ(pen_dataset_nlabels(ds, 4), 0);
	for (uint64_t i = 0; i < 5; i++) {
		CHECK_EQ(pen_dataset_label(ds, 2, i, buf, sizeof(buf)), 0);
		CHECK_STR(buf, kinds[i]);
	}
	CHECK_EQ(pen_dataset_label(ds, 2, 3, small, sizeof(small)), 0);
	CHECK_STR(small, "w");
	CHECK_EQ(pen_dataset_label(ds, 2, 5, buf, sizeof(buf)), PEN_ENOTFOUND);
	CHECK_EQ(pen_dataset_label(ds, 3, 1, buf, sizeof(buf)), 0);
	CHECK(strstr(buf, "joins/1.h5ad") != NULL);
	pen_loader_close(l);
}

/* ---- columns of var ---- */

static bool is_text(struct pen_span s, const char *text)
{
	return s.n == strlen(text) && memcmp(s.p, text, s.n) == 0;
}

static void drv_open_files(struct drv *d, const char *const *files,
			   const struct pen_opts_kv *kv, size_t nkv)
{
	struct pen_err err;
	uint8_t *p;
	size_t n;

	CHECK_EQ(drv_start(d, pen__format_find("h5ad"), kv, nkv, &err), 0);
	for (; *files; files++) {
		p = golden_read(*files, &n);
		drv_add(d, p, n);
		free(p);
	}
	CHECK_EQ(drv_bind(d, 0, &err), 0);
}

static void test_var(void)
{
	static const uint32_t rows[] = { 11, 2, 20, 3 };
	static const char *const one[] = { "anndata-gzip.h5ad", NULL };
	static const char *const three[] = { "joins/0.h5ad", "joins/1.h5ad",
					     "joins/2.h5ad", NULL };
	char listed[PATH_MAX], name[16];
	struct pen_opts_kv kv[] = { { "var", "*" },
				    { "genes", listed },
				    { "obs", "tissue,rank" } };
	static const struct pen_opts_kv outer[] = { { "var", "_index" },
						    { "join", "outer" } };
	const struct pen_cells_field *c;
	struct drv d;

	snprintf(listed, sizeof(listed), "@%s/genes.txt", golden_dir);
	drv_open_files(&d, one, kv, 3);
	CHECK_EQ(pen__cells_nvar(d.f), 2);
	c = pen__cells_var(d.f, 0);
	CHECK(is_text(c->name, "highly_variable") && c->dtype == PEN_BOOL);
	c = pen__cells_var(d.f, 1);
	CHECK(is_text(c->name, "length") && c->dtype == PEN_I64);
	for (uint32_t i = 0; i < 4; i++) {
		CHECK_EQ(pen__cells_var_row(d.f, i), rows[i]);
		snprintf(name, sizeof(name), "gene%u", rows[i]);
		CHECK(is_text(pen__cells_gene(d.f, i), name));
	}
	c = pen__cells_obs(d.f, 0);
	CHECK(is_text(c->name, "tissue") && c->coded && c->nnames == 3);
	CHECK(!c->ordered && pen__cells_obs(d.f, 1)->ordered);
	drv_close(&d);
	drv_open_files(&d, three, outer, 2);
	CHECK_EQ(pen__cells_nvar(d.f), 1);
	c = pen__cells_var(d.f, 0);
	CHECK(is_text(c->name, "_index") && c->coded && c->nnames == 6);
	for (uint32_t i = 0; i < 8; i++) {
		CHECK_EQ(pen__cells_var_row(d.f, i),
			 i < 6 ? i : PEN_CELLS_NONE);
		CHECK(is_text(pen__cells_gene(d.f, i),
			      (char[2]){ "abcdefxz"[i], '\0' }));
	}
	drv_close(&d);
}

/* ---- inspect ---- */

struct facts {
	char text[4096], advice[1024];
};

static void add_fact(void *arg, const char *name, const char *value)
{
	struct facts *f = arg;
	const size_t n = strlen(f->text);

	snprintf(f->text + n, sizeof(f->text) - n, "%s: %s\n", name, value);
}

static void add_advice(void *arg, const char *text)
{
	struct facts *f = arg;

	snprintf(f->advice, sizeof(f->advice), "%s", text);
}

static void describe(const char *file, struct facts *facts)
{
	struct pen_describe d = { facts, add_fact, add_advice };
	struct pen_err err;
	struct drv v;
	size_t n;
	uint8_t *p = golden_read(file, &n);

	memset(facts, 0, sizeof(*facts));
	if (CHECK_EQ(drv_open_one(&v, "h5ad", NULL, 0, 1,
				  (struct pen_span){ p, n }, &err),
		     0))
		v.f->ops->describe(v.f, &d);
	drv_close(&v);
	free(p);
}

static void test_describe(void)
{
	static const char *const says[] = {
		"matrix: X, sparse (csr)\n",
		"genes: 23\n",
		"obs tissue: 3 categories\n",
		"obs plate: ",
		"obs f64: float64\n",
		"obs flag: bool\n",
		"obs _index: strings\n",
		"chunks of",
		"deflate",
	};
	struct facts f;

	describe("anndata-gzip.h5ad", &f);
	for (size_t i = 0; i < sizeof(says) / sizeof(*says); i++)
		if (!CHECK(strstr(f.text, says[i]) != NULL))
			fprintf(stderr, "  no \"%s\" in:\n%s", says[i], f.text);
	describe("old7.h5ad", &f);
	CHECK(strstr(f.text, "obs kind: 2 categories\n") != NULL);
	describe("old6-vlen.h5ad", &f);
	CHECK(strstr(f.text, "obs n: int32\n") != NULL);
	describe("big-gzip.h5ad", &f);
	CHECK(strstr(f.advice, "sampler=block") != NULL);
	describe("big-None.h5ad", &f);
	CHECK(strstr(f.text, "in one piece") != NULL && !f.advice[0]);
}

/* ---- damage ---- */

static void test_damage(void)
{
	static const struct pen_opts_kv kv[][2] = {
		{ { "obs", "kind" }, { "output", "csr" } },
		{ { "obs", "*" }, { "filter", "kind:u|v" } },
		{ { "obs", "kind" }, { "normalize", "100" } },
		{ { "join", "outer" }, { "var", "*" } },
		{ { "genes", "first:2" }, { "output", "csr" } },
		{ { "matrix", "X,layers/l,obsm/p" }, { "output", "csr" } },
	};
	char file[32];
	uint8_t *p;
	size_t n;

	for (int i = 0; i < 6; i++) {
		snprintf(file, sizeof(file), "tiny-%d.h5ad", i % 3);
		formats_damage(file, "h5ad", kv[i], 2, false,
			       i < 3 ? 200 : 255);
		p = golden_read(file, &n);
		for (int k = 0; k < 2; k++)
			golden_check_nomem("h5ad", kv[i][k],
					   (struct pen_span){ p, n });
		free(p);
	}
	p = golden_read("kinds.h5ad", &n);
	golden_check_nomem("h5ad",
			   (struct pen_opts_kv){ "obs", "words,fixed,nested" },
			   (struct pen_span){ p, n });
	free(p);
}

int main(void)
{
	orders_make("h5ad", "anndata, h5py, scipy");
	formats_check(533);
	formats_refuse(59);
	test_orders();
	test_reads();
	test_kept();
	test_labels();
	test_var();
	test_describe();
	test_damage();
	return test_end();
}
