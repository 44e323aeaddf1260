/*
 * Shared by all tokenisers: truncation, padding, special tokens before and
 * after a sequence, and the dtype. token_open.c interprets the settings.
 */
#include <stdio.h>

#include "token/token_int.h"

uint64_t pen__tokens_each(const struct pen_tokens *t, uint64_t n)
{
	(void)t;
	return n;
}

/* Tokens in a row of n letters, including special tokens; an upper bound if the
 * tokeniser has list(). */
static uint64_t row_tokens(const struct pen_tokens *t, uint64_t n)
{
	uint64_t all;

	if (t->length)
		return t->length;
	all = t->ops->count(t, n) + t->nbegin + t->nend;
	return t->max && all > t->max ? t->max : all;
}

uint32_t pen__tokens_nfields(const struct pen_tokens *t)
{
	return t->ops->nfields ? t->ops->nfields : 1;
}

static void field_of(const struct pen_tokens *t, uint32_t i, uint64_t n,
		     struct pen_field *f)
{
	f->dtype = t->dtype;
	f->layout = PEN_DENSE;
	if (t->ops->shape) {
		t->ops->shape(t, i, n, f);
		return;
	}
	f->ndim = t->width > 1 ? 2 : 1;
	f->shape[0] = (int64_t)row_tokens(t, n);
	f->shape[1] = t->width;
}

int pen__tokens_field(const struct pen_tokens *t, uint32_t i, uint64_t shortest,
		      uint64_t longest, struct pen_field *out,
		      struct pen_err *err)
{
	struct pen_field least = { 0 };
	size_t bytes;

	memset(out, 0, sizeof(*out));
	if (longest > PEN_TOKEN_LETTERS)
		return pen__fail(
			err, P_BAD_DATA_VALUE, NULL,
			"a sequence has %llu letters; the limit is %llu",
			(unsigned long long)longest,
			(unsigned long long)PEN_TOKEN_LETTERS);
	field_of(t, i, longest, out);
	snprintf(out->name, sizeof(out->name), "%s",
		 t->ops->names ? t->ops->names[i] : t->ops->field);
	field_of(t, i, shortest, &least);
	bytes = pen_dtype_size(out->dtype);
	for (uint32_t j = 0; j < out->ndim; j++)
		if (!pen__mul(bytes, (size_t)out->shape[j], &bytes))
			return pen__fail(
				err, P_BAD_DATA_VALUE, out->name,
				"a row takes more bytes than can be addressed");
	out->max_bytes = bytes;
	if (least.shape[0] != out->shape[0] || (t->ops->list && !t->length)) {
		out->shape[0] = -1;
		out->layout = PEN_PADDED;
	}
	return 0;
}

void pen__tokens_pad(const struct pen_tokens *t, uint32_t i, int64_t *value,
		     bool *before)
{
	(void)i;
	*value = t->width > 1 ? 0 : t->pad; /* as in fixed-length rows */
	*before = t->pad_left;
}

void pen__tokens_shape(const struct pen_tokens *t, uint32_t i, uint64_t n,
		       int64_t *shape)
{
	struct pen_field f;

	field_of(t, i, n, &f);
	memcpy(shape, f.shape, f.ndim * sizeof(*shape));
}

/* Size of a list of ids, before truncation and conversion. */
static size_t list_bytes(const struct pen_tokens *t, uint64_t n)
{
	return (t->ops->count(t, n) * sizeof(uint32_t) + 63) / 64 * 64;
}

size_t pen__tokens_scratch(const struct pen_tokens *t, uint64_t longest)
{
	size_t own;

	if (longest > PEN_TOKEN_LETTERS)
		longest = PEN_TOKEN_LETTERS;
	own = t->ops->scratch ? t->ops->scratch(t, longest) : 0;
	return own + (t->ops->list ? list_bytes(t, longest) : 0);
}

bool pen__tokens_plain(const struct pen_tokens *t)
{
	return !t->ops->nfields && t->width == 1 && !t->nwords && !t->length &&
	       !t->max;
}

/* For unknown=error: finds the first letter outside the alphabet. */
static int check_letters(const struct pen_tokens *t,
			 const struct pen_sequence *s, struct pen_err *err)
{
	for (size_t i = 0; i < s->n; i++) {
		const uint8_t c = s->letters[i];

		if (t->code[c] == PEN_LETTER_UNKNOWN)
			return pen__fail(
				err, P_BAD_DATA_VALUE, NULL,
				"sample %llu, letter %zu: 0x%02x (%c) is not "
				"in the alphabet %s; set format.unknown=auto "
				"to accept unknown letters",
				(unsigned long long)s->number, i + 1, c,
				c > 32 && c < 127 ? c : '?', t->alphabet);
	}
	return 0;
}

static void put_pads(const struct pen_tokens *t, uint64_t n, uint8_t *out)
{
	const size_t all = n * t->item;

	if (!all || !t->pad || t->width > 1) {
		memset(out, 0, all);
		return;
	}
	pen__tokens_put(t, &t->pad, 1, out);
	for (size_t done = t->item; done < all;) { /* doubling copies */
		const size_t more = done < all - done ? done : all - done;

		memcpy(out + done, out, more);
		done += more;
	}
}

/* How the tokens of a row are divided. */
struct parts {
	uint64_t all, first, n, pads;
};

static struct parts cut_row(const struct pen_tokens *t, uint64_t made,
			    uint64_t room)
{
	const uint64_t ends = t->nbegin + t->nend;
	struct parts p = { .n = room > ends ? room - ends : 0 };

	if (p.n > made)
		p.n = made;
	p.first = t->cut_left ? made - p.n : 0;
	p.pads = t->length ? room - ends - p.n : 0;
	p.all = ends + p.n + p.pads;
	return p;
}

static void write_row(const struct pen_tokens *t, const struct pen_sequence *s,
		      const struct pen_token_row *row, struct parts p)
{
	uint8_t *out = row->dst[0];

	if (t->pad_left) {
		put_pads(t, p.pads, out);
		out += p.pads * t->item;
	}
	pen__tokens_put(t, t->begin, t->nbegin, out);
	out += t->nbegin * t->item;
	if (t->ops->list)
		pen__tokens_put(t, (uint32_t *)row->room + p.first, p.n, out);
	else if (p.n)
		t->ops->write(t, s, p.first, p.n, out, row->room);
	out += p.n * t->item;
	pen__tokens_put(t, t->end, t->nend, out);
	out += t->nend * t->item;
	if (!t->pad_left)
		put_pads(t, p.pads, out);
}

int pen__tokens_emit(const struct pen_tokens *t, const struct pen_sequence *s,
		     const struct pen_token_row *row, struct pen_err *err)
{
	uint32_t *ids = t->ops->list ? row->room : NULL;
	int64_t made;
	struct parts p;

	if (t->strict) {
		const int rc = check_letters(t, s, err);

		if (rc)
			return rc;
	}
	if (t->ops->emit)
		return t->ops->emit(t, s, row, err);
	made = (int64_t)t->ops->count(t, s->n);
	if (ids)
		made = t->ops->list(t, s, ids,
				    (uint8_t *)row->room + list_bytes(t, s->n),
				    err);
	if (made < 0)
		return (int)made;
	p = cut_row(t, (uint64_t)made, row->dst_len[0] / t->item);
	if (p.all * t->item > row->dst_len[0])
		return pen__fail(
			err, P_DAMAGED, NULL,
			"the letters of sample %llu (%zu) do not fit its row",
			(unsigned long long)s->number, s->n);
	write_row(t, s, row, p);
	row->used[0] = p.all * t->item;
	return 0;
}

uint64_t pen__tokens_nwords(const struct pen_tokens *t)
{
	return t->nwords;
}

int pen__tokens_word(const struct pen_tokens *t, uint64_t id, char *buf,
		     size_t cap)
{
	for (uint32_t i = 0; i < t->nspecials; i++)
		if (t->special_id[i] == id) {
			snprintf(buf, cap, "<%s>", t->special[i]);
			return 0;
		}
	if (id >= t->nwords || !t->ops->word)
		return PEN_ENOTFOUND;
	return t->ops->word(t, id, buf, cap);
}

void pen__tokens_describe(const struct pen_tokens *t, void *arg,
			  void (*fact)(void *arg, const char *name,
				       const char *value))
{
	char text[256];
	size_t n = 0;

	fact(arg, "tokens", t->name);
	if (t->nwords) {
		snprintf(text, sizeof(text), "%llu",
			 (unsigned long long)t->nwords);
		fact(arg, "vocabulary", text);
	}
	if (t->alphabet[0] && !t->ops->list)
		fact(arg, "alphabet", t->alphabet);
	for (uint32_t i = 0; i < t->nspecials && n < sizeof(text); i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s %u",
				      i ? ", " : "", t->special[i],
				      t->special_id[i]);
	if (t->nspecials)
		fact(arg, "special tokens", text);
}
