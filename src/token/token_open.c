/*
 * From settings to a ready tokeniser: presets of a model, ids of special
 * tokens, and the meaning of each byte. Settings that conflict are refused
 * here, never silently ignored.
 */
#include <ctype.h>
#include <stdio.h>

#include "token/token_int.h"

const char *const pen__token_dtypes[] = { "auto",    "uint8", "uint16",
					  "int32",   "int64", "float16",
					  "float32", NULL };
const char *const pen__token_sides[] = { "auto", "right", "left", NULL };
const char *const pen__token_cases[] = { "upper", "keep", NULL };
const char *const pen__token_ambiguous[] = { "auto", "n", "unknown", NULL };
const char *const pen__token_ns[] = { "keep", "pad", "unknown", NULL };
const char *const pen__token_unknowns[] = { "auto", "error", NULL };

enum { SIDE_AUTO, SIDE_RIGHT, SIDE_LEFT };
enum { AMBIGUOUS_AUTO, AMBIGUOUS_N, AMBIGUOUS_UNKNOWN };
enum { N_KEEP, N_PAD, N_UNKNOWN };

static const enum pen_dtype dtypes[] = { PEN_I32, PEN_U8,  PEN_U16, PEN_I32,
					 PEN_I64, PEN_F16, PEN_F32 };

/* Presets of published models. */
static const struct model {
	const char *tokens, *alphabet, *specials;
	int64_t k, stride;
	bool pad_left, n_known, singles;
} models[] = {
	{ .n_known = true },
	{ .tokens = "chars",
	  .alphabet = "ACGTN",
	  .specials = "cls,sep,bos,mask,pad,res,unk",
	  .pad_left = true },
	{ .tokens = "kmers",
	  .alphabet = "ATCG",
	  .specials = "pad,unk,cls,sep,mask",
	  .k = 6,
	  .stride = 1 },
	{ .tokens = "kmers",
	  .alphabet = "ATCG",
	  .specials = "unk,pad,mask,cls",
	  .k = 6,
	  .stride = 6,
	  .singles = true },
};
const char *const pen__token_models[] = { "none", "hyenadna", "dnabert",
					  "nucleotide_transformer", NULL };

int pen__tokens_special(const struct pen_tokens *t, const char *name, size_t n)
{
	for (uint32_t i = 0; i < t->nspecials; i++)
		if (strlen(t->special[i]) == n &&
		    memcmp(t->special[i], name, n) == 0)
			return (int)i;
	return -1;
}

size_t pen__tokens_next_name(const char **s, const char **name)
{
	*s += strspn(*s, ", ");
	*name = *s;
	*s += strcspn(*s, ", ");
	return (size_t)(*s - *name);
}

static int set_specials(struct pen_tokens *t, const char *s,
			struct pen_err *err)
{
	const char *name;
	size_t n;

	while (s && (n = pen__tokens_next_name(&s, &name))) {
		if (n >= sizeof(t->special[0]) ||
		    t->nspecials == PEN_TOKEN_SPECIALS)
			return pen__fail(
				err, P_BAD_VALUE, "specials",
				"accepts up to %u names of up to %zu letters",
				PEN_TOKEN_SPECIALS, sizeof(t->special[0]) - 1);
		if (pen__tokens_special(t, name, n) >= 0)
			return pen__fail(err, P_BAD_VALUE, "specials",
					 "'%.*s' is listed twice", (int)n,
					 name);
		memcpy(t->special[t->nspecials], name, n);
		t->special_id[t->nspecials] = t->nspecials;
		t->nspecials++;
	}
	return 0;
}

static int set_ends(const struct pen_tokens *t, const char *key, const char *s,
		    uint32_t *ids, uint32_t *count, struct pen_err *err)
{
	const char *name;
	size_t n;

	while (s && (n = pen__tokens_next_name(&s, &name))) {
		const int at = pen__tokens_special(t, name, n);

		if (at < 0)
			return pen__fail(
				err, P_UNKNOWN_NAME, key,
				"'%.*s' is not a special token of "
				"format.tokens=%s; add it to format.specials=",
				(int)n, name, t->name);
		if (*count == PEN_TOKEN_ENDS)
			return pen__fail(err, P_BAD_VALUE, key,
					 "accepts up to %u names",
					 PEN_TOKEN_ENDS);
		ids[(*count)++] = t->special_id[at];
	}
	return 0;
}

static int set_alphabet(struct pen_tokens *t, const char *s,
			struct pen_err *err)
{
	for (; *s; s++) {
		const char c = t->any_case ? *s : (char)toupper((uint8_t)*s);

		if (t->nletters == PEN_TOKEN_ALPHABET || (uint8_t)c <= ' ')
			return pen__fail(
				err, P_BAD_VALUE, "alphabet",
				"accepts up to %u letters and no blanks",
				PEN_TOKEN_ALPHABET);
		if (strchr(t->alphabet, c))
			return pen__fail(err, P_BAD_VALUE, "alphabet",
					 "'%c' is listed twice", c);
		t->alphabet[t->nletters++] = c;
	}
	return 0;
}

static uint8_t letter_number(const struct pen_tokens *t, char c)
{
	const char *at = c ? strchr(t->alphabet, c) : NULL;

	return at ? (uint8_t)(at - t->alphabet) : PEN_LETTER_UNKNOWN;
}

/* IUPAC codes for more than one base, except N. */
static bool is_ambiguous(char c)
{
	return c && strchr("RYKMSWBDHV", toupper((uint8_t)c)) != NULL;
}

void pen__tokens_codes(struct pen_tokens *t, const struct pen_token_opts *o)
{
	uint8_t n = letter_number(t, 'N');

	if (o->n != N_KEEP)
		n = o->n == N_PAD ? PEN_LETTER_PAD : PEN_LETTER_UNKNOWN;
	for (unsigned i = 0; i < 256; i++) {
		char c = (char)i;

		if (!t->any_case)
			c = (char)toupper((int)i);
		if (o->rna && (c == 'U' || c == 'u'))
			c = c == 'U' ? 'T' : 't';
		t->code[i] = letter_number(t, c);
		if (c == 'N' || (t->code[i] == PEN_LETTER_UNKNOWN && t->as_n &&
				 is_ambiguous(c)))
			t->code[i] = n;
	}
}

static bool is_own(const struct pen_token_ops *ops, const char *key)
{
	const size_t n = strlen(key);
	const char *s = ops->own;

	for (; s && *s; s += strcspn(s, ","), s += *s == ',')
		if (strcspn(s, ",") == n && strncmp(s, key, n) == 0)
			return true;
	return false;
}

/* Returns a setting that is set but belongs to other tokenisers. */
static const char *foreign(const struct pen_token_ops *ops,
			   const struct pen_token_opts *o)
{
	const struct {
		const char *key;
		bool set;
	} all[] = {
		{ "k", o->k != 0 },
		{ "stride", o->stride != 0 },
		{ "singles", o->singles },
		{ "gap", o->gap != 0 },
		{ "context", o->context != 3 },
		{ "noise", o->noise != 5 },
		{ "power", o->power != 0.75 },
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (all[i].set && !is_own(ops, all[i].key))
			return all[i].key;
	return NULL;
}

/* Refuses settings that this tokeniser does not have. */
static int refuse(const struct pen_tokens *t, const struct pen_token_opts *o,
		  struct pen_err *err)
{
	const struct pen_token_ops *ops = t->ops;
	const char *key = foreign(ops, o);

	if (!ops->takes_specials && (o->begin || o->end))
		key = o->begin ? "begin" : "end";
	if (!ops->takes_length && (o->length || o->max_length))
		key = o->length ? "length" : "max_length";
	if (!ops->has_letters && o->alphabet)
		key = "alphabet";
	if ((!ops->takes_specials || ops->whole_file) && o->specials)
		key = "specials";
	if (!ops->takes_file && o->vocab)
		key = "vocab";
	if (!ops->takes_merges && o->merges)
		key = "merges";
	if (!ops->has_letters && !ops->whole_file && o->unknown)
		key = "unknown";
	if (key)
		return pen__fail(err, P_CONFLICT, key,
				 "cannot be combined with format.tokens=%s; "
				 "remove the setting",
				 t->name);
	if (o->length && o->max_length)
		return pen__fail(err, P_CONFLICT, "max_length",
				 "cannot be combined with format.length=, "
				 "which also truncates; remove one of them");
	if (o->length > PEN_TOKEN_LETTERS || o->max_length > PEN_TOKEN_LETTERS)
		return pen__fail(err, P_BAD_VALUE,
				 o->length ? "length" : "max_length",
				 "larger than any sequence can be");
	return 0;
}

/* With all ids known: finds the pad and end tokens, and checks that the ids fit
 * the dtype. */
static int settle(struct pen_tokens *t, const struct pen_token_opts *o,
		  struct pen_err *err)
{
	const uint64_t most = t->length ? t->length : t->max;
	const bool floats = t->dtype == PEN_F16 || t->dtype == PEN_F32;
	int rc, at = pen__tokens_special(t, "pad", 3);

	if (at >= 0)
		t->pad = t->special_id[at];
	rc = set_ends(t, "begin", o->begin, t->begin, &t->nbegin, err);
	if (!rc)
		rc = set_ends(t, "end", o->end, t->end, &t->nend, err);
	if (rc)
		return rc;
	if (most && most < t->nbegin + t->nend)
		return pen__fail(err, P_BAD_VALUE,
				 t->length ? "length" : "max_length",
				 "too small for the %u special tokens of "
				 "format.begin= and format.end=",
				 t->nbegin + t->nend);
	if (t->nwords > UINT32_MAX || (t->dtype == PEN_U8 && t->nwords > 256) ||
	    (t->dtype == PEN_U16 && t->nwords > 65536) ||
	    (t->dtype == PEN_I32 && t->nwords > INT32_MAX))
		return pen__fail(err, P_BAD_VALUE, "dtype",
				 "%s is too small for %llu tokens; set "
				 "format.dtype=auto",
				 pen_dtype_name(t->dtype),
				 (unsigned long long)t->nwords);
	if (floats && t->width == 1)
		return pen__fail(
			err, P_BAD_VALUE, "dtype",
			"%s cannot hold token ids; set format.dtype=int32",
			pen_dtype_name(t->dtype));
	t->item = pen_dtype_size(t->dtype) * t->width;
	return 0;
}

enum pen_dtype pen__tokens_dtype(const struct pen_tokens *t, uint64_t nwords)
{
	if (t->dtype_given)
		return t->dtype;
	return nwords <= 256	     ? PEN_U8
	       : nwords <= 65536     ? PEN_U16
	       : nwords <= INT32_MAX ? PEN_I32
				     : PEN_I64;
}

static int find_model(struct pen_tokens *t, const struct pen_token_opts *o,
		      struct pen_err *err)
{
	const char *tokens = models[o->model].tokens;
	unsigned i = (unsigned)o->tokens;

	/* model= implies tokens= */
	if (tokens && strcmp(pen__token_names[i], "none") == 0)
		for (i = 0; strcmp(pen__token_names[i], tokens) != 0;)
			i++;
	t->ops = pen__token_at(i);
	t->name = pen__token_names[i];
	if (tokens && strcmp(t->name, tokens) != 0)
		return pen__fail(err, P_CONFLICT, "model",
				 "%s requires format.tokens=%s, not %s",
				 pen__token_models[o->model], tokens, t->name);
	return 0;
}

static int prepare(struct pen_tokens *t, const struct pen_token_opts *given,
		   struct pen_err *err)
{
	const struct model *m = &models[given->model];
	struct pen_token_opts o = *given;
	const char *alphabet, *specials = o.specials;
	int rc = find_model(t, &o, err);

	if (!rc)
		rc = refuse(t, &o, err);
	if (rc)
		return rc;
	t->width = 1;
	t->dtype = dtypes[o.dtype];
	t->dtype_given = o.dtype != 0;
	t->length = o.length;
	t->max = o.max_length;
	t->pad_left = o.pad == SIDE_LEFT || (o.pad == SIDE_AUTO && m->pad_left);
	t->cut_left = o.cut == SIDE_LEFT;
	t->strict = o.unknown != 0;
	t->any_case = o.letters != 0;
	alphabet = o.alphabet ? o.alphabet : m->alphabet;
	if (!alphabet)
		alphabet = t->ops->alphabet;
	if (!specials && !t->ops->whole_file)
		specials = m->specials ? m->specials : t->ops->specials;
	rc = set_specials(t, specials, err);
	if (!rc && alphabet)
		rc = set_alphabet(t, alphabet, err);
	if (rc)
		return rc;
	t->as_n = o.ambiguous == AMBIGUOUS_N ||
		  (o.ambiguous == AMBIGUOUS_AUTO && m->n_known);
	pen__tokens_codes(t, &o);
	o.singles = o.singles || m->singles;
	o.k = o.k ? o.k : m->k;
	o.k_set = o.k != 0;
	o.k = o.k ? o.k : 4;
	o.stride = o.stride ? o.stride : m->stride ? m->stride : 1;
	rc = t->ops->open ? t->ops->open(t, &o, err) : 0;
	return rc ? rc : settle(t, &o, err);
}

int pen__tokens_open(struct pen_tokens **out, const struct pen_token_opts *o,
		     struct pen_err *err)
{
	struct pen_tokens *t = pen__calloc(1, sizeof(*t));
	int rc;

	*out = NULL;
	if (!t)
		return pen__fail_nomem(err, "tokens", sizeof(*t));
	rc = prepare(t, o, err);
	if (rc) {
		pen__tokens_close(t);
		return rc;
	}
	*out = t;
	return 0;
}

void pen__tokens_close(struct pen_tokens *t)
{
	if (t && t->ops && t->ops->close)
		t->ops->close(t);
	pen__free(t);
}
