/*
 * Structs that are passed with their size: a program that knows fewer members
 * than the library, or more, gets those known to both, and nothing is written
 * beyond its size.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "penstock.h"
#include "test.h"

struct told {
	struct pen_loader *l;
	struct pen_ddict *d;
};

static void stats(const struct told *t, void *out, size_t size)
{
	pen_loader_stats(t->l, out, size);
}

static void loader_info(const struct told *t, void *out, size_t size)
{
	pen_loader_get_info(t->l, out, size);
}

static void dataset_info(const struct told *t, void *out, size_t size)
{
	pen_dataset_get_info(pen_loader_dataset(t->l), out, size);
}

static void shard_stats(const struct told *t, void *out, size_t size)
{
	CHECK_EQ(pen_ddict_stats(t->d, 0, out, size, NULL), 0);
}

static void option(const struct told *t, void *out, size_t size)
{
	(void)t;
	CHECK_EQ(pen_option_at("loader", NULL, 0, out, size), 0);
}

static const struct {
	void (*fill)(const struct told *, void *out, size_t size);
	size_t size;
} all[] = {
	{ stats, sizeof(struct pen_stats) },
	{ loader_info, sizeof(struct pen_loader_info) },
	{ dataset_info, sizeof(struct pen_dataset_info) },
	{ shard_stats, sizeof(struct pen_shard_stats) },
	{ option, sizeof(struct pen_option) },
};

/* Every size up to a struct of this library and beyond. */
static void any_size(const struct told *t, size_t i)
{
	unsigned char want[1024], got[1024];

	memset(want, 0, sizeof(want));
	all[i].fill(t, want, all[i].size);
	for (size_t n = 0; n <= all[i].size + 64; n += 8) {
		memset(got, 0xa5, sizeof(got));
		all[i].fill(t, got, n);
		for (size_t k = all[i].size; k < n; k++)
			CHECK_EQ(got[k], 0);
		for (size_t k = n; k < n + 64; k++)
			CHECK_EQ(got[k], 0xa5);
		/* times have advanced since; the first member is constant */
		if (n >= 8)
			CHECK(memcmp(got, want, 8) == 0);
	}
}

static int open_bytes(struct pen_loader **out, struct pen_err *err)
{
	char path[64];
	struct pen_spec *spec;
	FILE *f;
	int rc;

	snprintf(path, sizeof(path), "sizes-%d.raw", (int)getpid());
	f = fopen(path, "w");
	CHECK(f && fputs("40 bytes that are 10 samples of four each", f) >= 0);
	CHECK(f && fclose(f) == 0);
	CHECK_EQ(truncate(path, 40), 0);
	rc = pen_spec_new(&spec, err);
	if (!rc)
		rc = pen_spec_add_path(spec, path, err);
	if (!rc)
		rc = pen_spec_parse(spec, "format.dtype=uint8", err);
	if (!rc)
		rc = pen_spec_parse(spec, "format.shape=4", err);
	if (!rc)
		rc = pen_loader_open(out, spec, err);
	pen_spec_free(spec);
	unlink(path);
	return rc;
}

int main(void)
{
	struct told t = { 0 };
	struct pen_err err = { 0 };

	CHECK_EQ(open_bytes(&t.l, &err), 0);
	CHECK_EQ(pen_ddict_open(&t.d, NULL, NULL, 0, &err), 0);
	CHECK_STR(err.msg, "");
	for (size_t i = 0; t.l && t.d && i < sizeof(all) / sizeof(all[0]); i++)
		any_size(&t, i);
	pen_ddict_close(t.d);
	pen_loader_close(t.l);
	return test_end();
}
