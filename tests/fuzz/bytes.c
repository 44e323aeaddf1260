/*
 * Codecs, decoders, tokenisers with their files, and the parsers that several
 * formats share.
 */
#include "fuzz.h"

#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "codec/cellpack.h"
#include "codec/codec.h"
#include "codec/crc32c.h"
#include "codec/npy_header.h"
#include "decode_driver.h"
#include "format/zip.h"
#include "make/torch_file.h"
#include "token/token.h"
#include "token/words.h"

/* Two bytes with the room for the result, and what is to be decompressed. */
void fuzz_codec(const char *of, const uint8_t *p, size_t n)
{
	const struct pen_codec *c = pen__codec_find(of);
	struct pen_scratch s;
	struct pen_bytes b = pen__bytes(p, n);
	const size_t cap = pen__take_u16(&b);
	size_t got = 0;
	uint8_t *out;

	if (b.bad || pen__scratch_init(&s, 0))
		return;
	out = malloc(cap ? cap : 1);
	if (!c->unpack(&s, b.p, pen__bytes_left(&b), out, cap, &got))
		FUZZ_MUST(got <= cap);
	free(out);
	pen__scratch_fini(&s);
}

/* A byte that selects options, and a value. */
void fuzz_decoder(const char *of, const uint8_t *p, size_t n)
{
	const struct pen_decoder_ops *ops = NULL;
	struct pen_scratch scratch;
	struct pen_opts_kv kv[8];
	struct pen_decoder *d;
	uint8_t *row;
	size_t len;

	for (unsigned i = 0; !ops || strcmp(ops->name, of) != 0; i++)
		ops = pen__decoder_at(i);
	if (!n || pen__scratch_init(&scratch, 0))
		return;
	if (!pen__decoder_open(&d, ops, kv, dec_options(ops, p[0], kv), "",
			       NULL)) {
		(void)dec_value(d, (struct pen_span){ p + 1, n - 1 }, &scratch,
				&row, &len, NULL);
		free(row);
		pen__decoder_close(d);
	}
	pen__scratch_fini(&scratch);
}

struct token_priv {
	struct pen_token_opts token;
};

static const struct pen_opt token_table[] = {
	PEN_TOKEN_OPTS(struct token_priv, token),
	{ .name = NULL },
};

static void emit(const struct pen_tokens *t, const uint8_t *letters, size_t n)
{
	struct pen_err err = { 0 };
	struct pen_sequence s = { letters, n, 1, 2 };
	size_t len[4], used[4];
	void *dst[4] = { NULL };
	struct pen_token_row row = { dst, len, used, NULL };

	row.room = pen__alloc(pen__tokens_scratch(t, n) + 1, 1);
	for (uint32_t i = 0; i < pen__tokens_nfields(t); i++) {
		struct pen_field f;

		FUZZ_MUST(!pen__tokens_field(t, i, n, n, &f, &err));
		len[i] = used[i] = f.max_bytes;
		dst[i] = pen__alloc(len[i] + 1, 1);
	}
	(void)pen__tokens_emit(t, &s, &row, &err);
	for (uint32_t i = 0; i < pen__tokens_nfields(t); i++) {
		FUZZ_MUST(used[i] <= len[i]);
		pen__free(dst[i]);
	}
	pen__free(row.room);
}

/* A byte of options, one with the number of letters, the letters, and the file
 * of words or merges. */
void fuzz_token(const char *of, const uint8_t *p, size_t n)
{
	struct pen_bytes b = pen__bytes(p, n);
	const unsigned pick = pen__take_u8(&b);
	const size_t nletters = pen__take_u8(&b);
	const uint8_t *letters = pen__take(&b, nletters);
	const bool bpe = strcmp(of, "bpe") == 0,
		   reads = !strcmp(of, "kmers") || !strcmp(of, "frames") ||
			   !strcmp(of, "vocab") || !strcmp(of, "dm");
	struct pen_opts_kv kv[8] = { { "tokens", of } };
	struct pen_err err = { 0 };
	struct pen_tokens *t = NULL;
	struct token_priv o;
	struct fuzz_file f;
	size_t k = 1;

	if (b.bad)
		return;
	f = fuzz_file(b.p, pen__bytes_left(&b));
	if (bpe)
		kv[k++] = (struct pen_opts_kv){ "merges", f.path };
	if (reads || (bpe && pick & 1))
		kv[k++] = (struct pen_opts_kv){ "vocab", f.path };
	if (pick & 2)
		kv[k++] = (struct pen_opts_kv){ "rna", "true" };
	if (pick & 4)
		kv[k++] = (struct pen_opts_kv){ "case", "keep" };
	if (pick & 8)
		kv[k++] = (struct pen_opts_kv){ "length", "7" };
	if (pick & 16)
		kv[k++] = (struct pen_opts_kv){ "k", "3" };
	FUZZ_MUST(!pen__opt_fill(token_table, &o, kv, k, "", &err));
	o.token.k_set = pick & 16;
	if (pen__tokens_open(&t, &o.token, &err) == 0)
		emit(t, letters ? letters : b.p, nletters);
	else
		FUZZ_MUST(err.msg[0]);
	pen__tokens_close(t);
	pen__opt_fini(token_table, &o);
	close(f.fd);
}

/* A vocabulary; the first byte is the length of words that are not checked. */
void fuzz_words(const char *of, const uint8_t *p, size_t n)
{
	struct pen_words w = { 0 };
	struct pen_err err = { 0 };
	struct fuzz_file f;

	(void)of;
	if (!n)
		return;
	f = fuzz_file(p + 1, n - 1);
	if (pen__words_load(&w, f.path, p[0] % 8, &err)) {
		FUZZ_MUST(err.msg[0]);
	} else {
		for (uint32_t i = 0; i < w.n; i++) {
			const uint32_t len = pen__words_length(&w, i);
			const uint32_t at =
				pen__words_find(&w, pen__words_at(&w, i), len);

			FUZZ_MUST(at == UINT32_MAX || at < w.n);
		}
		pen__words_fini(&w);
	}
	close(f.fd);
}

static void walk(const struct pen_jdoc *j, uint32_t node, unsigned depth)
{
	double number;
	uint64_t n;
	bool minus;

	FUZZ_MUST(depth < 4096);
	(void)pen__jdoc_text(j, node);
	(void)pen__jdoc_get(j, node, "a");
	(void)pen__jdoc_count_of(j, node, &n);
	(void)pen__jdoc_number(j, node, &number);
	(void)pen__jdoc_integer(j, node, &n, &minus);
	n = 0;
	for (uint32_t c = pen__jdoc_first(j, node); c != PEN_JDOC_NONE;
	     c = pen__jdoc_next(j, c), n++)
		walk(j, c, depth + 1);
	FUZZ_MUST(n == pen__jdoc_count(j, node));
}

void fuzz_json(const char *of, const uint8_t *p, size_t n)
{
	struct pen_err err = { 0 };
	struct pen_jdoc j;

	(void)of;
	if (pen__jdoc_open(&j, p, n, "fuzz", &err)) {
		FUZZ_MUST(err.msg[0]);
		return;
	}
	walk(&j, 0, 0);
	pen__jdoc_close(&j);
}

void fuzz_npy(const char *of, const uint8_t *p, size_t n)
{
	struct pen_npy a, again;
	struct pen_buf buf = { 0 };
	struct pen_bytes b;
	struct pen_err err = { 0 };

	(void)of;
	if (pen__npy_parse((struct pen_span){ p, n }, "fuzz", &a, &err)) {
		FUZZ_MUST(err.msg[0]);
		return;
	}
	FUZZ_MUST(a.a.at <= n && a.extra <= n - a.a.at);
	pen__npy_put(&buf, &a);
	b = pen__bytes(buf.p, buf.n);
	FUZZ_MUST(pen__npy_take(&b, &again) && again.a.at == a.a.at &&
		  again.a.ndim == a.a.ndim && again.a.dtype == a.a.dtype);
	pen__buf_fini(&buf);
}

void fuzz_zip(const char *of, const uint8_t *p, size_t n)
{
	struct pen_peek_bytes pk =
		pen__peek_bytes((struct pen_span){ p, n }, "fuzz");
	struct pen_err err = { 0 };
	struct pen_zip z = { 0 };

	(void)of;
	if (pen__zip_open(&z, &pk.pk, &err) < 0)
		FUZZ_MUST(err.msg[0]);
	else
		for (size_t i = 0; i < z.n; i++) {
			const struct pen_zip_member *m = &z.m[i];

			FUZZ_MUST(m->data <= m->limit && m->limit <= n &&
				  m->csize <= m->limit - m->data);
			(void)pen__zip_usable(m, "fuzz", &err);
		}
	pen__zip_close(&z);
}

/* The state that files of tests/fuzz/seeds.py have. */
static void state_init(struct pen_torch_state *s)
{
	static const struct pen_torch_item items[] = {
		{ PEN_TORCH_TENSOR, PEN_SD_FP32, 4, "a" },
		{ PEN_TORCH_OPEN, 0, 0, "d" },
		{ PEN_TORCH_TENSOR, PEN_SD_INT8, 5, "b" },
		{ PEN_TORCH_TENSOR, PEN_SD_BF16, 3, "c" },
		{ PEN_TORCH_CLOSE, 0, 0, "" },
		{ PEN_TORCH_SAME, 0, 0, "e" },
	};

	*s = (struct pen_torch_state){ 0 };
	for (size_t i = 0; i < sizeof(items) / sizeof(items[0]); i++)
		FUZZ_MUST(!pen__torch_add(s, items[i].kind, items[i].key,
					  items[i].dtype, items[i].n));
}

void fuzz_pickle(const char *of, const uint8_t *p, size_t n)
{
	struct pen_torch_key key[3] = { { "" } };
	struct pen_torch_state s;
	struct pen_err err = { 0 };

	(void)of;
	state_init(&s);
	if (pen__torch_unpickle(&s, (struct pen_span){ p, n }, "fuzz", key,
				&err))
		FUZZ_MUST(err.msg[0]);
	for (size_t i = 0; i < 3; i++)
		FUZZ_MUST(memchr(key[i].s, '\0', sizeof(key[i].s)));
	pen__torch_fini(&s);
}

struct source {
	const uint8_t *p;
	size_t n, at;
};

static const uint8_t *next(void *arg, size_t *n, struct pen_err *err)
{
	struct source *s = arg;
	const uint8_t *p = s->p + s->at;

	(void)err;
	FUZZ_MUST(s->at < s->n);
	*n = s->n - s->at < 100 ? s->n - s->at : 100;
	s->at += *n;
	return p;
}

void fuzz_torch(const char *of, const uint8_t *p, size_t n)
{
	struct pen_peek_bytes pk =
		pen__peek_bytes((struct pen_span){ p, n }, "fuzz");
	struct source in = { p, n, 0 };
	struct pen_torch_source from = { &in, &pk.pk, next, NULL };
	struct pen_torch_state s;
	struct pen_err err = { 0 };

	(void)of;
	state_init(&s);
	if (pen__torch_read(&s, &from, &err))
		FUZZ_MUST(err.msg[0]);
	pen__torch_fini(&s);
}

#define NUMBERS 1500u

static void places(const struct pen_cellplaces *c, const uint8_t *p, size_t n)
{
	uint32_t again[NUMBERS];
	struct pen_cellplaces d = *c;
	struct pen_buf b = { 0 };
	const char *why;

	if (pen__places_unpack(c, p, n, &why) < 0 || c->width != 4)
		return;
	d.to = again;
	pen__places_pack(c->rows, c->to, c->n, &b);
	FUZZ_MUST(pen__places_unpack(&d, b.p, b.n, &why) >= 0 &&
		  !memcmp(c->to, again, 4 * (size_t)c->n));
	pen__buf_fini(&b);
}

static void numbers(const struct pen_cellnumbers *c, const uint8_t *p, size_t n,
		    struct pen_scratch *s)
{
	uint64_t again[NUMBERS], top;
	struct pen_cellnumbers d = *c;
	struct pen_buf b = { 0 };
	const char *why;

	if (pen__numbers_unpack(c, p, n, s, &why) < 0 || c->as != c->dtype)
		return;
	d.to = again;
	pen__numbers_pack(c->rows, c->dtype, c->to, c->n, &b, &top);
	FUZZ_MUST(pen__numbers_unpack(&d, b.p, b.n, s, &why) >= 0 &&
		  !memcmp(c->to, again, c->n * pen_dtype_size(c->dtype)));
	pen__buf_fini(&b);
}

/*
 * The first bytes select type, width and rows, the rest is packed numbers or
 * places. Unpacked data is packed again and must unpack to the same.
 */
void fuzz_cellpack(const char *of, const uint8_t *data, size_t size)
{
	uint32_t start[17] = { 0 };
	uint64_t to[NUMBERS];
	struct pen_scratch s;
	uint8_t *p;
	uint32_t n;

	(void)of;
	if (size < 24 || pen__scratch_init(&s, sizeof(to)) < 0)
		return;
	for (unsigned i = 0; i < 16; i++)
		start[i + 1] = start[i] + data[i + 2] % 94;
	n = data[1] & 1 ? start[16] : (data[1] >> 1) * 8u;
	p = malloc(size - 18); /* exactly, for the address sanitizer */
	memcpy(p, data + 18, size - 18);
	{
		const struct pen_cellrows rows = { start, 4, data[1] % 17 };
		const enum pen_dtype t = (enum pen_dtype)(data[0] % 12);
		const struct pen_cellplaces g = { &rows, to, n,
						  data[0] & 16 ? 4 : 2 };
		const struct pen_cellnumbers c = { t,
						   data[0] & 32 ? PEN_U16 : t,
						   n, to, &rows };

		if (data[0] & 64)
			places(&g, p, size - 18);
		else
			numbers(&c, p, size - 18, &s);
	}
	free(p);
	pen__scratch_fini(&s);
}
