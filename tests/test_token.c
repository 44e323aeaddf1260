/* What all tokenisers have alike: types, specials, cutting and padding. */
#include "test.h"

#include "base/mem.h"
#include "token/token.h"

struct priv {
	struct pen_token_opts token;
};

static const struct pen_opt table[] = {
	PEN_TOKEN_OPTS(struct priv, token),
	{ .name = NULL },
};

static void letters_as_they_are(void)
{
	static const uint8_t text[] = "ACGTnn";
	const struct pen_sequence s = { text, 6, 0, 0 };
	struct pen_err err = { 0 };
	struct pen_tokens *t;
	struct pen_field f;
	struct priv p;
	uint8_t out[6];
	void *dst[] = { out };
	size_t len[] = { 6 }, used[] = { 6 };
	const struct pen_token_row row = { dst, len, used, NULL };

	CHECK_EQ(pen__opt_fill(table, &p, NULL, 0, &err), 0);
	CHECK_EQ(pen__tokens_open(&t, &p.token, &err), 0);
	CHECK_EQ(pen__tokens_nfields(t), 1);
	CHECK_EQ(pen__tokens_field(t, 0, 6, 6, &f, &err), 0);
	CHECK_STR(f.name, "seq");
	CHECK_EQ(f.dtype, PEN_U8);
	CHECK_EQ(f.shape[0], 6);
	CHECK_EQ(pen__tokens_field(t, 0, 2, 6, &f, &err), 0);
	CHECK_EQ(f.shape[0], -1);
	CHECK_EQ(f.max_bytes, 6);
	CHECK(pen__tokens_plain(t));
	CHECK_EQ(pen__tokens_emit(t, &s, &row, &err), 0);
	CHECK(memcmp(out, text, 6) == 0);
	pen__tokens_close(t);
	pen__opt_fini(table, &p);
}

int main(void)
{
	letters_as_they_are();
	return test_end();
}
