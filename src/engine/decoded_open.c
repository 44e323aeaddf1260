/*
 * Which fields are decoded, and how: decode.FIELD=NAME[:OPTIONS], where OPTIONS
 * is VALUE,KEY=VALUE,... A bare VALUE sets the first option of a decoder
 * (json:caption, raw:float32,shape=3x4). `none` delivers the bytes, `auto`
 * selects a decoder by the first bytes.
 */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "engine/decoded_int.h"

static int add_decoder(struct pen_coded *c, const struct pen_decoder_ops *o,
		       const struct pen_pairs *kv, const char *prefix,
		       struct pen_err *err)
{
	int rc;

	if (c->nkinds == PEN_CODED_KINDS)
		return pen__fail(err, P_BAD_VALUE, "decode",
				 "too many decoders for one field");
	rc = pen__decoder_open(&c->decoder[c->nkinds], o, kv->kv, kv->n, prefix,
			       err);
	c->nkinds += !rc;
	c->by_head = o->head != NULL;
	return rc;
}

/* ---- image.* ---- */

/* Which decoded field the settings of a group without a field's name go to. */
struct group {
	const struct pen_pairs *image;
	bool taken; /* by an earlier field */
};

/* The setting of [FIELD.]SETTING if it is meant for this field, or NULL. */
static const char *meant(const struct group *g, const char *key,
			 const char *field)
{
	const char *dot = strrchr(key, '.');
	const size_t n = strlen(field);

	if (!dot)
		return g->taken ? NULL : key;
	return (size_t)(dot - key) == n && strncmp(key, field, n) == 0 ? dot + 1
								       : NULL;
}

/* Adds the settings of images to the options of a decoder of images. */
static int add_group(struct pen_pairs *kv, const struct pen_decoder_ops *o,
		     const struct group *g, const char *field,
		     struct pen_err *err)
{
	char key[96];
	int rc = 0;

	for (size_t i = 0; o->group && i < g->image->n && !rc; i++) {
		const char *setting = meant(g, g->image->kv[i].key, field);

		if (!setting)
			continue;
		snprintf(key, sizeof(key), "%s.%s", o->group, setting);
		rc = pen__pairs_add(kv, key, g->image->kv[i].value, err);
	}
	return rc;
}

/* Every setting of images must be meant for some field. */
static int check_group(const struct pen_decoded *d,
		       const struct pen_pairs *image, struct pen_err *err)
{
	for (size_t i = 0; i < image->n; i++) {
		struct group g = { image, false };
		char where[96];
		uint32_t j = 0;

		while (j < d->ncoded &&
		       !(d->coded[j].decoder[0]->ops->group &&
			 meant(&g, image->kv[i].key, d->coded[j].name)))
			j++;
		if (j < d->ncoded)
			continue;
		snprintf(where, sizeof(where), "image.%.80s", image->kv[i].key);
		return pen__fail(err, P_NO_EFFECT, where,
				 "no %sfield is decoded as an image; set "
				 "decode.FIELD=jpeg, or omit it",
				 strchr(image->kv[i].key, '.') ? "such " : "");
	}
	return 0;
}

/* ---- decode.FIELD= ---- */

/* Parses "a=b,c" into pairs; a word without = sets the first option. */
static int take_options(struct pen_pairs *kv, const struct pen_opt *opts,
			const char *text, const char *where,
			struct pen_err *err)
{
	char key[64], value[256];
	int rc = 0;

	for (size_t n; *text && !rc; text += n + (text[n] == ',')) {
		const char *eq;
		size_t k;

		n = strcspn(text, ",");
		eq = memchr(text, '=', n);
		k = eq ? (size_t)(eq - text) : 0;
		if (k >= sizeof(key) || n - k > sizeof(value) - 1 ||
		    (!eq && (!opts || kv->n)))
			return pen__fail(
				err, P_BAD_VALUE, where,
				"'%.*s' is not an option; write KEY=VALUE",
				(int)(n < 60 ? n : 60), text);
		memcpy(key, text, k);
		key[k] = '\0';
		memcpy(value, text + (eq ? k + 1 : 0), n - (eq ? k + 1 : 0));
		value[n - (eq ? k + 1 : 0)] = '\0';
		rc = pen__pairs_add(kv, eq ? key : opts->name, value, err);
	}
	return rc;
}

static int add_auto(struct pen_coded *c, const struct group *g,
		    const char *prefix, struct pen_err *err)
{
	const struct pen_decoder_ops *o;
	int rc = 0;

	for (unsigned i = 0; (o = pen__decoder_at(i)) && !rc; i++) {
		struct pen_pairs kv = { 0 };

		if (!o->magic)
			continue;
		rc = add_group(&kv, o, g, c->name, err);
		if (!rc)
			rc = add_decoder(c, o, &kv, prefix, err);
		pen__pairs_clear(&kv);
	}
	return rc;
}

static int unknown(const char *where, const char *name, struct pen_err *err)
{
	struct pen_near near = pen__near(name, strlen(name));
	const struct pen_decoder_ops *o;

	for (unsigned i = 0; (o = pen__decoder_at(i)); i++)
		pen__near_see(&near, o->name, strlen(o->name));
	pen__near_see(&near, "none", 4);
	pen__near_see(&near, "auto", 4);
	return pen__fail(err, P_UNKNOWN_NAME, where,
			 "unknown decoder '%.60s' (see `penstock decoders`)%s",
			 name, pen__near_text(&near).s);
}

/* Opens the requested decoders of a field; c->nkinds is 0 for `none`. */
static int open_asked(struct pen_coded *c, const struct pen_opts_kv *asked,
		      const struct group *g, struct pen_err *err)
{
	const size_t n = strcspn(asked->value, ":");
	const char *options = asked->value + n + (asked->value[n] == ':');
	const struct pen_decoder_ops *o;
	struct pen_pairs kv = { 0 };
	char name[64], where[80], prefix[112];
	int rc;

	*c = (struct pen_coded){ 0 };
	snprintf(name, sizeof(name), "%.*s", (int)(n < 63 ? n : 63),
		 asked->value);
	snprintf(where, sizeof(where), "decode.%.63s", asked->key);
	if (!*asked->key || strlen(asked->key) >= sizeof(c->name))
		return pen__fail(
			err, P_BAD_VALUE, where,
			"a field name of at most 63 bytes must follow the dot");
	memcpy(c->name, asked->key, strlen(asked->key) + 1);
	snprintf(prefix, sizeof(prefix), "%s=%.20s:", where, name);
	o = pen__decoder_find(name);
	if (!o && strcmp(name, "none") != 0 && strcmp(name, "auto") != 0)
		return unknown(where, name, err);
	if (!o && *options)
		return pen__fail(err, P_BAD_VALUE, where,
				 "'%s' takes no options", name);
	if (!o)
		return *name == 'n' ? 0 : add_auto(c, g, prefix, err);
	rc = take_options(&kv, o->opts, options, where, err);
	if (!rc)
		rc = add_group(&kv, o, g, c->name, err);
	if (!rc)
		rc = add_decoder(c, o, &kv, prefix, err);
	pen__pairs_clear(&kv);
	return rc;
}

static void close_kinds(struct pen_coded *c)
{
	while (c->nkinds)
		pen__decoder_close(c->decoder[--c->nkinds]);
}

int pen__decoded_try(const struct pen_pairs *decode, struct pen_err *err)
{
	const struct pen_pairs none = { 0 };
	const struct group g = { &none, false };
	struct pen_coded c;
	int rc = 0;

	for (size_t i = 0; i < decode->n && !rc; i++) {
		rc = open_asked(&c, &decode->kv[i], &g, err);
		close_kinds(&c);
	}
	return rc;
}

/* ---- the format's own decoder ---- */

/* An option given for the format that only its decoder uses, or NULL. */
static const char *passed_on(const struct pen_format_ops *f,
			     const struct pen_pairs *given)
{
	const struct pen_decoder_ops *o;

	for (size_t i = 0; i < given->n; i++)
		for (unsigned k = 0; (o = pen__decoder_at(k)); k++)
			if (strstr(f->decoder, o->name) &&
			    pen__opt_find(o->opts, given->kv[i].key))
				return given->kv[i].key;
	return NULL;
}

static int open_own(struct pen_coded *c, const struct pen_format_ops *f,
		    const struct pen_pairs *given, const struct group *g,
		    struct pen_err *err)
{
	const struct pen_decoder_ops *o;
	char name[64];
	size_t n;
	int rc = 0;

	*c = (struct pen_coded){ .name = "x" };
	for (const char *p = f->decoder; *p && !rc; p += n + (p[n] == ' ')) {
		struct pen_pairs kv = { 0 };

		n = strcspn(p, " ");
		snprintf(name, sizeof(name), "%.*s", (int)n, p);
		o = pen__decoder_find(name);
		for (size_t i = 0; o && i < given->n && !rc; i++)
			if (pen__opt_find(o->opts, given->kv[i].key))
				rc = pen__pairs_add(&kv, given->kv[i].key,
						    given->kv[i].value, err);
		if (o && !rc)
			rc = add_group(&kv, o, g, c->name, err);
		if (o && !rc)
			rc = add_decoder(c, o, &kv, "format.", err);
		pen__pairs_clear(&kv);
	}
	if (!rc && !c->nkinds)
		rc = pen__fail(err, P_NOT_IN_BUILD, f->name,
			       "this build has no decoder for it; set "
			       "decode.x=none to deliver the bytes");
	return rc;
}

static bool is_grouped(const struct pen_coded *c)
{
	return c->nkinds && c->decoder[0]->ops->group;
}

int pen__coded_open(struct pen_decoded *d, const struct pen_format_ops *f,
		    const struct pen_decode_set *set, struct pen_err *err)
{
	const struct pen_pairs *decode = &set->decode;
	const struct pen_pairs *given = &set->format;
	struct group g = { &set->image, false };
	bool own = f->decoder != NULL;
	int rc = 0;

	d->coded = pen__calloc(decode->n + 1, sizeof(*d->coded));
	if (!d->coded)
		return pen__fail_nomem(err, "decode", decode->n);
	for (size_t i = 0; i < decode->n && !rc; i++) {
		struct pen_coded *c = &d->coded[d->ncoded];
		const char *key = decode->kv[i].key;

		/* if a field is named again, the last setting wins */
		if (pen__pairs_get(decode, key) != decode->kv[i].value)
			continue;
		rc = open_asked(c, &decode->kv[i], &g, err);
		d->ncoded += c->nkinds > 0;
		g.taken = g.taken || is_grouped(c);
		if (strcmp(key, "x") != 0 || !own)
			continue;
		own = false;
		if (!rc && passed_on(f, given))
			rc = pen__fail(err, P_NO_EFFECT, "decode.x",
				       "makes format.%s ineffective; write it "
				       "as decode.x=NAME:%s=...",
				       passed_on(f, given),
				       passed_on(f, given));
	}
	if (!rc && own) {
		rc = open_own(&d->coded[d->ncoded], f, given, &g, err);
		d->ncoded += d->coded[d->ncoded].nkinds > 0;
	}
	return rc ? rc : check_group(d, &set->image, err);
}

void pen__coded_close(struct pen_decoded *d)
{
	for (uint32_t j = 0; j < d->ncoded; j++)
		close_kinds(&d->coded[j]);
	pen__free(d->coded);
}
