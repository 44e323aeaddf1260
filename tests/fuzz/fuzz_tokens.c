/*
 * Arbitrary files of words and merges: the first byte selects the tokeniser,
 * the second the length of the sequence.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "token/token.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct priv {
	struct pen_token_opts token;
};

static const struct pen_opt table[] = {
	PEN_TOKEN_OPTS(struct priv, token),
	{ .name = NULL },
};

static void emit(const struct pen_tokens *t, size_t n)
{
	static uint8_t text[256];
	struct pen_err err = { 0 };
	struct pen_sequence s = { text, n, 1, 2 };
	size_t len[4], used[4];
	void *dst[4] = { NULL };
	struct pen_token_row row = { dst, len, used, NULL };

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (uint8_t) "ACGTACCAANU"[i * i % 11];
	row.room = pen__alloc(pen__tokens_scratch(t, n) + 1, 1);
	for (uint32_t i = 0; i < pen__tokens_nfields(t); i++) {
		struct pen_field f;

		if (pen__tokens_field(t, i, n, n, &f, &err))
			abort();
		len[i] = used[i] = f.max_bytes;
		dst[i] = pen__alloc(len[i] + 1, 1);
	}
	(void)pen__tokens_emit(t, &s, &row, &err);
	for (uint32_t i = 0; i < pen__tokens_nfields(t); i++) {
		if (used[i] > len[i])
			abort();
		pen__free(dst[i]);
	}
	pen__free(row.room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const ways[][2] = {
		{ "vocab", "vocab" },  { "kmers", "vocab" },
		{ "frames", "vocab" }, { "dm", "vocab" },
		{ "bpe", "merges" },
	};
	const char *const *way;
	struct pen_err err = { 0 };
	struct pen_tokens *t = NULL;
	struct priv p;
	char path[64];
	int fd;

	if (size < 2)
		return 0;
	way = ways[data[0] % 5];
	fd = memfd_create("words", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data + 2, size - 2) != (ssize_t)(size - 2))
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	{
		const struct pen_opts_kv kv[] = { { "tokens", way[0] },
						  { way[1], path } };

		if (pen__opt_fill(table, &p, kv, 2, "", &err))
			abort();
	}
	if (pen__tokens_open(&t, &p.token, &err) == 0)
		emit(t, data[1]);
	else if (!err.msg[0])
		abort();
	pen__tokens_close(t);
	pen__opt_fini(table, &p);
	close(fd);
	return 0;
}
