/*
 * What Penstock reads from files, for differential.py to compare with other
 * programs: fuzz_dump FORMAT [KEY=VALUE...], or fuzz_dump zip. Standard input
 * has files, each after four bytes with its length. The answer to each is four
 * bytes with its length, then 'e' and a message, or 'o' and records. A record
 * is a name of 32 bytes, the data type, the number of axes, eight axes of 8
 * bytes, four bytes with the length of the data, and the data. A record without
 * data that can be read has the data type 255 and the message as data.
 */
#include "fuzz.h"

#include <unistd.h>

#include "format/zip.h"
#include "format_driver.h"

static struct pen_buf out;

static void record(const char *name, size_t n, unsigned dtype, unsigned ndim,
		   const int64_t *shape)
{
	char buf[32] = "";

	memcpy(buf, name, n < sizeof(buf) ? n : sizeof(buf));
	pen__buf_put(&out, buf, sizeof(buf));
	pen__buf_le(&out, dtype, 1);
	pen__buf_le(&out, ndim, 1);
	for (unsigned i = 0; i < 8; i++)
		pen__buf_le(&out, i < ndim ? (uint64_t)shape[i] : 0, 8);
}

static void data(const void *p, size_t n)
{
	pen__buf_le(&out, n, 4);
	if (n)
		pen__buf_put(&out, p, n);
}

static void failed(const char *name, size_t n, const struct pen_err *err)
{
	record(name, n, 255, 0, NULL);
	data(err->msg, strlen(err->msg));
}

static void refused(const struct pen_err *err)
{
	pen__buf_put(&out, "e", 1);
	pen__buf_put(&out, err->msg, strlen(err->msg));
}

static void dump_rows(struct drv *d, uint64_t k)
{
	struct drv_rows rows = { 0 };
	struct pen_err err = { 0 };

	if (drv_sample(d, 0, k, &rows, &err) < 0) {
		failed("", 0, &err);
	} else {
		for (uint32_t i = 0; i < rows.n; i++) {
			const struct pen_field *f = &d->f->field[i];
			int64_t shape[PEN_MAX_DIMS];

			d->f->ops->shape(d->f, 0, k, i, shape);
			record(f->name, strlen(f->name), f->dtype, f->ndim,
			       shape);
			data(rows.p[i], rows.len[i]);
		}
	}
	drv_rows_free(&rows);
}

static void dump(const char *format, const struct pen_opts_kv *kv, size_t nkv,
		 struct pen_span in)
{
	static struct drv d;
	struct pen_err err = { 0 };
	size_t all = 0;

	if (drv_open_one(&d, format, kv, nkv, 1, in, &err) < 0) {
		refused(&err);
		drv_close(&d);
		return;
	}
	for (uint32_t i = 0; i < d.f->nfields; i++)
		all += d.f->field[i].max_bytes;
	pen__fail(&err, P_DAMAGED, "", "larger than this test compares");
	if (all > (size_t)16 << 20 || d.obj[0].nsamples > 4096) {
		refused(&err);
	} else {
		pen__buf_put(&out, "o", 1);
		for (uint64_t k = 0; k < d.obj[0].nsamples; k++)
			dump_rows(&d, k);
	}
	drv_close(&d);
}

static void dump_member(const struct pen_zip_member *m, const uint8_t *p,
			struct pen_scratch *s)
{
	struct pen_err err = { 0 };
	uint8_t *to = NULL;
	int rc = pen__zip_usable(m, "", &err);

	if (!rc && m->usize > (uint64_t)16 << 20)
		rc = pen__fail(&err, P_DAMAGED, "", "too large");
	if (!rc)
		to = malloc(m->usize + 1);
	if (!rc && m->method == PEN_ZIP_STORED)
		memcpy(to, p + m->data, m->usize);
	else if (!rc && pen__inflate(s, p + m->data, m->csize, to, m->usize))
		rc = pen__fail(&err, P_DAMAGED, "", "cannot be inflated");
	if (!rc && pen__crc32(0, to, m->usize) != m->crc)
		rc = pen__fail(&err, P_CHECKSUM, "", "the checksum differs");
	if (rc) {
		failed(m->name, m->name_len, &err);
	} else {
		record(m->name, m->name_len, PEN_U8, 0, NULL);
		data(to, m->usize);
	}
	free(to);
}

static void dump_zip(struct pen_span in)
{
	struct pen_peek_bytes pk = pen__peek_bytes(in, "zip");
	struct pen_scratch s;
	struct pen_err err = { 0 };
	struct pen_zip z = { 0 };

	FUZZ_MUST(!pen__scratch_init(&s, 0));
	if (pen__zip_open(&z, &pk.pk, &err) < 0) {
		refused(&err);
	} else {
		pen__buf_put(&out, "o", 1);
		for (size_t i = 0; i < z.n; i++)
			dump_member(&z.m[i], in.p, &s);
	}
	pen__zip_close(&z);
	pen__scratch_fini(&s);
}

int main(int argc, char **argv)
{
	struct pen_opts_kv kv[16];
	size_t nkv = 0;
	uint32_t n;

	for (int i = 2; i < argc && nkv < 16; i++) {
		char *value = strchr(argv[i], '=');

		FUZZ_MUST(value);
		*value = '\0';
		kv[nkv++] = (struct pen_opts_kv){ argv[i], value + 1 };
	}
	while (argc > 1 && fread(&n, 4, 1, stdin) == 1) {
		uint8_t *p = malloc(n ? n : 1);
		const struct pen_span in = { p, n };

		FUZZ_MUST(p && fread(p, 1, n, stdin) == n);
		out.n = 0;
		if (strcmp(argv[1], "zip") == 0)
			dump_zip(in);
		else
			dump(argv[1], kv, nkv, in);
		n = (uint32_t)out.n;
		FUZZ_MUST(fwrite(&n, 4, 1, stdout) == 1 &&
			  fwrite(out.p, 1, n, stdout) == n);
		fflush(stdout);
		free(p);
	}
	pen__buf_fini(&out);
	return 0;
}
