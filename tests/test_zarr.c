/*
 * zarr against anndata and zarr: versions 2 and 3, directories and archives,
 * every layout of a matrix and its obs, value by value, through the loader; any
 * order, store and number of threads; a cached index; invalid stores, and
 * stores damaged at every position.
 */
#include <dirent.h>
#include <sys/stat.h>

#include "orders.h"

static void test_orders(void)
{
	static const char *const samplers[] = {
		"sampler=block sampler.chunk=16 sampler.chunks=32",
		"sampler=shuffle", "sampler=sequential"
	};
	static const char *const stores[] = { "posix", "mmap", "uring", "ram" };
	static const char *const kinds[] = { "v2", "v3", "shards", "none" };
	char how[160], name[64], settings[160];

	for (size_t c = 0; c < 8; c++)
		for (size_t s = 0; s < 4; s++)
			for (size_t k = 0; k < 3; k++) {
				if (!pen__store_find(stores[s]))
					continue;
				snprintf(how, sizeof(how),
					 "%s store=%s threads=%d", samplers[k],
					 stores[s], (c + k + s) % 2 ? 1 : 8);
				snprintf(name, sizeof(name), "big-%s%s",
					 kinds[c % 4], c / 4 ? "-csr" : "");
				snprintf(settings, sizeof(settings),
					 "big-%s.zarr format.obs=label%s",
					 kinds[c % 4],
					 c / 4 ? " format.output=csr" : "");
				orders_load(name, settings, how);
			}
	orders_load("big-v2", "big-v2.zarr format.obs=label",
		    "sampler=block sampler.chunk=16 threads=1 memory=4MB");
}

/* Each chunk is read once; of unfiltered values only those needed are read. */
static void test_reads(void)
{
	static const char *const how[] = { "big-none.zarr sampler=shuffle",
					   "big-v2.zarr sampler=sequential" };

	for (int i = 0; i < 2; i++) {
		struct pen_loader *l = eng_open(NULL,
						"%s/%s batch_size=64 threads=2 "
						"store=posix epochs=1",
						golden_dir, how[i]);
		struct pen_stats st;

		CHECK_EQ(eng_run(l, 1, NULL, NULL), PEN_END);
		pen_loader_stats(l, &st, sizeof(st));
		CHECK(i ? st.read_bytes <= 300000u : st.read_bytes == 480000u);
		pen_loader_close(l);
	}
}

/* Blocks of a chunk are read individually: there are three chunks of data
 * and three of indices, and more reads. */
static void test_blocks(void)
{
	static const char *const files[] = {
		"blocks-lz4-2",
		"blocks-zstd-1",
		"blocks-v3-shard",
		"blocks-gap",
		"blocks-random-80000-160000",
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct pen_loader *l = eng_open(NULL,
						"%s/%s.zarr batch_size=64 "
						"threads=1 store=posix "
						"epochs=1 sampler=sequential",
						golden_dir, files[i]);
		struct pen_stats st;

		CHECK_EQ(eng_run(l, 1, NULL, NULL), PEN_END);
		pen_loader_stats(l, &st, sizeof(st));
		CHECK(st.nreads > 12);
		pen_loader_close(l);
	}
}

/* Reads of one epoch: a chunk that is still held when the next epoch starts
 * may save a read. */
static uint64_t reads_of(const char *file, const char *how)
{
	struct pen_loader *l = eng_open(NULL,
					"%s/%s batch_size=64 threads=2 "
					"store=posix epochs=1 %s",
					golden_dir, file, how);
	struct pen_stats st = { 0 };

	if (CHECK(l))
		CHECK_EQ(eng_run(l, 1, NULL, NULL), PEN_END);
	pen_loader_stats(l, &st, sizeof(st));
	pen_loader_close(l);
	return st.nreads;
}

/* A chunk that several shuffle blocks need is kept for them: it is read once
 * per epoch, as in sequential order. */
static void test_borders(void)
{
	static const char *const files[] = { "blocks-lz4-2.zarr",
					     "big-v2.zarr" };

	for (size_t i = 0; i < 2; i++) {
		const uint64_t n = reads_of(files[i], "sampler=sequential");

		CHECK(reads_of(files[i], "sampler=block sampler.chunk=4 "
					 "sampler.chunks=8") <= n);
	}
}

/* The index is cached, and reused until a file is added or removed. */
static void test_kept(void)
{
	struct formats_warned w = { .text = "X/data/0" };
	char path[192];
	struct pen_loader *l = NULL;
	struct pen_err err;

	for (int i = 0; i < 3; i++) {
		l = eng_open(&err,
			     "%s/ad.zarr format.obs=tissue batch_size=7 "
			     "index_cache=%s/kept",
			     golden_dir, golden_dir);
		if (!CHECK(l != NULL))
			return;
		CHECK_EQ(eng_run(l, 1, NULL, &err), PEN_END);
		pen_loader_close(l);
	}
	snprintf(path, sizeof(path), "%s/ad.zarr/X/data/0", golden_dir);
	CHECK_EQ(rename(path, "moved"), 0);
	l = eng_open(&err,
		     "%s/ad.zarr format.obs=tissue batch_size=7 "
		     "index_cache=%s/kept",
		     golden_dir, golden_dir);
	/* removed: all of it reads as the fill value, with a warning, also
	 * when the index comes from the cache */
	CHECK(l != NULL);
	if (l)
		CHECK_EQ(eng_run(l, 1, NULL, &err), PEN_END);
	pen_loader_close(l);
	l = eng_open(&err,
		     "%s/ad.zarr format.obs=tissue batch_size=7 "
		     "index_cache=%s/kept",
		     golden_dir, golden_dir);
	if (CHECK(l != NULL))
		pen_dataset_warnings(l->ds, &w, formats_see);
	CHECK(w.found_note && w.nnotes == 1 && !w.nbad);
	pen_loader_close(l);
	CHECK_EQ(rename("moved", path), 0);
}

/* ---- damage ---- */

/* Opens and reads a store with any content; errors must have a message. */
static void try_store(const char *dir)
{
	struct pen_err err = { 0 };
	struct pen_loader *l = eng_open(&err,
					"%s/%s format=zarr format.obs=kind "
					"batch_size=4 epochs=1 threads=1 "
					"sampler=sequential index_cache=off",
					golden_dir, dir);
	int rc = err.code;

	if (l)
		rc = eng_run(l, 1, NULL, &err);
	CHECK(rc == PEN_END || (err.code < 0 && err.msg[0] && err.where[0]));
	pen_loader_close(l);
}

/* Writes a new file: overwriting a truncated one would force a write-back. */
static void put_bytes(const char *path, const uint8_t *p, size_t n)
{
	FILE *f;

	unlink(path);
	f = fopen(path, "wb");
	if (CHECK(f != NULL))
		CHECK(fwrite(p, 1, n, f) == n && fclose(f) == 0);
}

static void damage_file(const char *dir, const char *file)
{
	char path[PATH_MAX];
	size_t n;
	uint8_t *p = golden_read(file, &n);

	snprintf(path, sizeof(path), "%s/%s", golden_dir, file);
	for (size_t i = 0; i < n; i += n / 12 + 1) {
		const uint8_t old = p[i];

		put_bytes(path, p, i);
		try_store(dir);
		p[i] ^= (uint8_t)(1 + i * 37 % 255);
		put_bytes(path, p, n);
		try_store(dir);
		p[i] = old;
	}
	CHECK_EQ(remove(path), 0);
	try_store(dir);
	put_bytes(path, p, n);
	free(p);
}

static void damage_dir(const char *root, const char *dir)
{
	char path[PATH_MAX], file[1024];
	struct dirent *e;
	struct stat sb;
	DIR *d;

	snprintf(path, sizeof(path), "%s/%s", golden_dir, dir);
	d = opendir(path);
	while (CHECK(d != NULL) && (e = readdir(d))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		snprintf(file, sizeof(file), "%.500s/%.255s", dir, e->d_name);
		snprintf(path, sizeof(path), "%s/%s", golden_dir, file);
		if (stat(path, &sb) == 0 && S_ISDIR(sb.st_mode))
			damage_dir(root, file);
		else
			damage_file(root, file);
	}
	closedir(d);
}

static void test_damage(void)
{
	static const struct pen_opts_kv kv[][2] = {
		{ { "obs", "kind" }, { "output", "csr" } },
		{ { "obs", "kind" }, { "filter", "kind:u|v" } },
		{ { "obs", "kind" }, { "normalize", "100" } },
		{ { "obs", "kind" }, { "output", "csr" } },
	};
	char file[32];
	uint8_t *p;
	size_t n;

	for (int i = 0; i < 4; i++) {
		snprintf(file, sizeof(file), "tiny-%d.zip", i);
		if (i < 3) /* the last is large; see its directory */
			formats_damage(file, "zarr", kv[i], 2, false, 200);
		p = golden_read(file, &n);
		for (int k = 0; k < 2; k++)
			golden_check_nomem("zarr", kv[i][k],
					   (struct pen_span){ p, n });
		free(p);
		snprintf(file, sizeof(file), "tiny-%d.zarr", i);
		damage_dir(file, file);
	}
}

int main(void)
{
	orders_make("zarr", "anndata, numcodecs, scipy, zarr");
	formats_check(500);
	formats_refuse(125);
	formats_warn(55);
	test_orders();
	test_reads();
	test_blocks();
	test_borders();
	test_kept();
	test_damage();
	return test_end();
}
