/*
 * A member of a JSON object: text or a number. A thread reuses the memory of
 * its documents. Rejects members of another type than requested, and integers
 * beyond 2^53, which other JSON readers round.
 */
#include "base/json.h"

#include <string.h>

#include "base/mem.h"
#include "decode/decode.h"

struct json {
	char *key;
	int type;
};

enum { TEXT, INT, FLOAT };
static const char *const types[] = { "text", "int", "float", NULL };

static const struct pen_opt json_opts[] = {
	{ .name = "key",
	  .type = PEN_OPT_STR,
	  .off = offsetof(struct json, key),
	  .help = "name of the member" },
	{ .name = "type",
	  .type = PEN_OPT_ENUM,
	  .off = offsetof(struct json, type),
	  .dflt = "text",
	  .choices = types,
	  .help = "type of the member: text (as bytes), int (as int64) or "
		  "float (as float64)" },
	{ .name = NULL },
};

static int json_open(struct pen_decoder *d, struct pen_err *err)
{
	const struct json *p = d->priv;

	return p->key ? 0
		      : pen__fail(err, P_MISSING_SETTING, "key",
				  "no member given; specify it, as in "
				  "json:caption");
}

static void json_size(const struct pen_decoder *d, uint64_t n,
		      struct pen_head *out)
{
	const struct json *p = d->priv;

	*out = (struct pen_head){ .dtype = p->type == INT ? PEN_I64 : PEN_F64 };
	if (p->type != TEXT)
		return;
	/* a string is never longer than its JSON form */
	*out = (struct pen_head){
		.dtype = PEN_U8, .ndim = 1, .follows = true, .upto = true
	};
	out->shape[0] = (int64_t)n;
}

static void free_doc(void *doc)
{
	pen__jdoc_close(doc);
	pen__free(doc);
}

static struct pen_jdoc *doc_of(struct pen_scratch *s)
{
	struct pen_kept *k = pen__scratch_keep(s, json_opts);

	if (k && !k->p) {
		k->p = pen__calloc(1, sizeof(struct pen_jdoc));
		k->free = free_doc;
	}
	return k ? k->p : NULL;
}

static int put_text(const struct pen_jdoc *j, uint32_t at,
		    const struct pen_encoded *v, struct pen_err *err)
{
	const uint32_t n = j->node[at].n;

	if (n > v->len)
		return pen__decoder_misfit(err);
	if (n)
		memcpy(v->dst, pen__jdoc_text(j, at), n);
	*v->used = n;
	return 0;
}

static int put_number(const struct json *p, const struct pen_jdoc *j,
		      uint32_t at, const struct pen_encoded *v,
		      struct pen_err *err)
{
	uint64_t amount = 0;
	int64_t whole;
	bool minus;
	double x = 0;

	(void)pen__jdoc_number(j, at, &x);
	if (v->len != sizeof(x))
		return pen__decoder_misfit(err);
	if (p->type == FLOAT) {
		memcpy(v->dst, &x, sizeof(x));
		return 0;
	}
	if (!pen__jdoc_integer(j, at, &amount, &minus) ||
	    amount > UINT64_C(1) << 53)
		return pen__fail(err, P_BAD_DATA_VALUE, NULL,
				 "'%.60s' is %.17g, not an integer up to 2^53",
				 p->key, x);
	whole = minus ? -(int64_t)amount : (int64_t)amount;
	memcpy(v->dst, &whole, sizeof(whole));
	return 0;
}

static int json_decode(const struct pen_decoder *d, const struct pen_encoded *v,
		       struct pen_err *err)
{
	const struct json *p = d->priv;
	struct pen_jdoc *j = doc_of(v->scratch);
	enum pen_jdoc_type type;
	uint32_t at;
	int rc;

	if (!j)
		return pen__fail_nomem(err, "json", sizeof(*j));
	rc = pen__jdoc_again(j, v->bytes.p, v->bytes.n, NULL, err);
	if (rc)
		return rc;
	at = pen__jdoc_get(j, 0, p->key);
	if (at == PEN_JDOC_NONE)
		return pen__fail(err, P_BAD_DATA_VALUE, NULL,
				 "there is no member '%.60s'", p->key);
	type = pen__jdoc_type(j, at);
	if (p->type == TEXT && type == PEN_JDOC_STRING)
		return put_text(j, at, v, err);
	if (p->type != TEXT && type == PEN_JDOC_NUMBER)
		return put_number(p, j, at, v, err);
	return pen__fail(err, P_BAD_DATA_VALUE, NULL,
			 "'%.60s' is not %s; set %stype= to its type", p->key,
			 p->type == TEXT ? "text" : "a number", d->prefix);
}

static const char *const json_media[] = { "application/json", NULL };

const struct pen_decoder_ops pen__decoder_json = {
	.name = "json",
	.help = "a member of a JSON object: text or a number",
	.media = json_media,
	.opts = json_opts,
	.priv_size = sizeof(struct json),
	.open = json_open,
	.size = json_size,
	.decode = json_decode,
};
