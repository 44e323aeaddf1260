/* See words.h. */
#include "token/words.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define FILE_LIMIT (UINT64_C(1) << 30)
/* Numbers that JSON gives to words need not be without gaps, but nearly so. */
#define GAPS 65536u

int pen__words_slurp(const char *path, uint64_t limit, char **bytes, size_t *n,
		     struct pen_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), rc = 0;
	struct stat st;
	char *p = NULL;
	size_t got = 0;

	*bytes = NULL;
	if (fd < 0)
		return pen__fail_sys(err, errno, path, "cannot be opened");
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		rc = pen__fail(err, PEN_EINVAL, path, "is not a file");
	else if ((uint64_t)st.st_size > limit)
		rc = pen__fail(err, PEN_ENOTSUP, path,
			       "is larger than a vocabulary can be (%llu MiB)",
			       (unsigned long long)(limit >> 20));
	else if (!(p = pen__alloc((size_t)st.st_size + 1, 1)))
		rc = pen__fail_nomem(err, path, (size_t)st.st_size + 1);
	while (!rc && got < (size_t)st.st_size) {
		const ssize_t m = read(fd, p + got, (size_t)st.st_size - got);

		if (m < 0 && errno == EINTR)
			continue;
		if (m < 0)
			rc = pen__fail_sys(err, errno, path, "cannot be read");
		if (m <= 0)
			break;
		got += (size_t)m;
	}
	close(fd);
	if (rc) {
		pen__free(p);
		return rc;
	}
	/* a mark that says "UTF-8" is no part of the first word */
	if (got >= 3 && !memcmp(p, "\xef\xbb\xbf", 3)) {
		got -= 3;
		memmove(p, p + 3, got);
	}
	p[got] = '\0';
	*bytes = p;
	*n = got;
	return 0;
}

static uint64_t hash(const char *s, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (uint8_t)s[i]) * 0x100000001b3u;
	return h ^ h >> 29;
}

/* Where a word is, or the empty place where it would be. */
static uint32_t *place(const struct pen_words *w, const char *s, size_t n)
{
	for (uint64_t at = hash(s, n);; at++) {
		uint32_t *slot = &w->slot[at & w->mask];

		if (!*slot || (pen__words_length(w, *slot - 1) == n &&
			       memcmp(pen__words_at(w, *slot - 1), s, n) == 0))
			return slot;
	}
}

uint32_t pen__words_find(const struct pen_words *w, const char *s, size_t n)
{
	return w->n ? *place(w, s, n) - 1 : UINT32_MAX;
}

void pen__words_fini(struct pen_words *w)
{
	pen__free(w->text);
	pen__free(w->start);
	pen__free(w->count);
	pen__free(w->slot);
	pen__free(w->where);
	*w = (struct pen_words){ 0 };
}

static int reserve(struct pen_words *w, uint64_t n, uint64_t bytes,
		   struct pen_err *err)
{
	uint64_t slots = 16;

	if (n >= UINT32_MAX / 4 || bytes + n >= UINT32_MAX)
		return pen__fail(err, PEN_ENOTSUP, w->where,
				 "has too many words");
	while (slots < 2 * n)
		slots *= 2;
	w->text = pen__alloc((size_t)(bytes + n + 1), 1);
	w->start = pen__calloc((size_t)n + 1, sizeof(*w->start));
	w->count = pen__calloc((size_t)n + 1, sizeof(*w->count));
	w->slot = pen__calloc((size_t)slots, sizeof(*w->slot));
	w->mask = (uint32_t)(slots - 1);
	if (!w->text || !w->start || !w->count || !w->slot)
		return pen__fail_nomem(err, w->where, (size_t)(8 * slots));
	return 0;
}

/* The next word, number w->n. `at` says where in the file it is. */
static int append(struct pen_words *w, const char *s, size_t n, uint64_t at,
		  struct pen_err *err)
{
	uint32_t *slot;
	const uint32_t from = w->start[w->n];

	if (!n || n > PEN_WORD_LETTERS || memchr(s, '\0', n))
		return pen__fail(err, PEN_EDATA, w->where,
				 "word %llu is empty, longer than %u letters, "
				 "or has NULs in it",
				 (unsigned long long)at, PEN_WORD_LETTERS);
	slot = place(w, s, n);
	if (*slot && w->again)
		return 0;
	if (*slot)
		return pen__fail(err, PEN_EDATA, w->where,
				 "word %llu, '%.40s', was there before, as "
				 "number %u: a word has one number",
				 (unsigned long long)at,
				 pen__words_at(w, *slot - 1), *slot - 1);
	memcpy(w->text + from, s, n);
	w->text[from + n] = '\0';
	w->start[w->n + 1] = (uint32_t)(from + n + 1);
	*slot = ++w->n;
	if (n > w->longest)
		w->longest = (uint32_t)n;
	return 0;
}

static int parse_count(const char *s, const char *end, uint64_t *out)
{
	uint64_t v = 0;

	if (s == end)
		return PEN_EDATA;
	for (; s < end; s++) {
		if (*s < '0' || *s > '9' || v > (UINT64_MAX - 9) / 10)
			return PEN_EDATA;
		v = v * 10 + (uint64_t)(*s - '0');
	}
	*out = v;
	return 0;
}

static int parse_line(struct pen_words *w, const char *s, const char *end,
		      uint64_t line, struct pen_err *err)
{
	const char *tab;
	int rc;

	if (end > s && end[-1] == '\r')
		end--;
	if (s == end)
		return 0;
	if (end - s >= 2 && s[0] == '#' && s[1] == ' ') {
		const char *k = strstr(s, " k=");

		if (line == 1 && k && k < end && k[3] >= '1' && k[3] <= '9')
			w->k = (uint32_t)(k[3] - '0') *
				       (k[4] >= '0' && k[4] <= '9' ? 10u : 1u) +
			       (k[4] >= '0' && k[4] <= '9'
					? (uint32_t)(k[4] - '0')
					: 0u);
		return 0;
	}
	tab = memchr(s, '\t', (size_t)(end - s));
	rc = append(w, s, (size_t)((tab ? tab : end) - s), line, err);
	if (!rc && tab && parse_count(tab + 1, end, &w->count[w->n - 1]))
		rc = pen__fail(err, PEN_EDATA, w->where,
			       "line %llu: '%.20s' is not a count",
			       (unsigned long long)line, tab + 1);
	return rc;
}

static int parse_lines(struct pen_words *w, const char *s, size_t n,
		       struct pen_err *err)
{
	const char *const end = s + n;
	uint64_t lines = 0, line = 0;
	int rc;

	for (const char *p = s; p < end; p++)
		lines += *p == '\n';
	rc = reserve(w, lines + 1, n, err);
	while (!rc && s < end) {
		const char *stop = memchr(s, '\n', (size_t)(end - s));

		rc = parse_line(w, s, stop ? stop : end, ++line, err);
		s = stop ? stop + 1 : end;
	}
	return rc;
}

int pen__words_lines(struct pen_words *w, const char *s, size_t n,
		     const char *where, struct pen_err *err)
{
	int rc;

	*w = (struct pen_words){ .again = true, .where = pen__strdup(where) };
	if (!w->where)
		return pen__fail_nomem(err, where, strlen(where) + 1);
	rc = parse_lines(w, s, n, err);
	w->again = false;
	return !rc && !w->n ? pen__fail(err, PEN_EDATA, where, "has no words")
			    : rc;
}

/* Words in the order of their numbers; gaps are words of no letters. */
static int fill_gaps(struct pen_words *w, const struct pen_jdoc *d,
		     const uint32_t *node, uint64_t n, struct pen_err *err)
{
	for (uint64_t i = 0; i < n; i++) {
		const struct pen_jdoc_node *x = &d->node[node[i]];
		const char *key;
		int rc;

		if (node[i] == PEN_JDOC_NONE) {
			w->start[w->n + 1] = w->start[w->n];
			w->n++;
			continue;
		}
		key = d->text + x->key;
		rc = append(w, key, strlen(key), i, err);
		if (rc)
			return rc;
	}
	return 0;
}

int pen__words_parse(struct pen_words *w, const struct pen_jdoc *d,
		     uint32_t object, const char *where, struct pen_err *err)
{
	const uint64_t n = pen__jdoc_count(d, object);
	uint64_t most = 0, bytes = 0, id;
	uint32_t *node = NULL;
	int rc = 0;

	if (!w->where && !(w->where = pen__strdup(where)))
		return pen__fail_nomem(err, where, strlen(where) + 1);
	if (pen__jdoc_type(d, object) != PEN_JDOC_OBJECT || !n)
		return pen__fail(err, PEN_EDATA, where,
				 "has no object of words and their numbers");
	node = pen__alloc((size_t)(n + GAPS), sizeof(*node));
	if (!node)
		return pen__fail_nomem(err, where, (size_t)(n + GAPS) * 4);
	memset(node, 0xff, (size_t)(n + GAPS) * sizeof(*node));
	for (uint32_t x = pen__jdoc_first(d, object); x != PEN_JDOC_NONE && !rc;
	     x = pen__jdoc_next(d, x)) {
		const char *key = d->text + d->node[x].key;

		if (!pen__jdoc_count_of(d, x, &id) || id >= n + GAPS ||
		    node[id] != PEN_JDOC_NONE)
			rc = pen__fail(err, PEN_EDATA, where,
				       "the number of '%.40s' is not whole, "
				       "too large, or another word's",
				       key);
		else
			node[id] = x;
		bytes += strlen(key);
		most = !rc && id > most ? id : most;
	}
	if (!rc)
		rc = reserve(w, most + 1, bytes, err);
	if (!rc)
		rc = fill_gaps(w, d, node, most + 1, err);
	pen__free(node);
	return rc;
}

static int parse_json(struct pen_words *w, const char *s, size_t n,
		      struct pen_err *err)
{
	struct pen_jdoc d = { 0 };
	uint32_t at = 0, model;
	int rc = pen__jdoc_open(&d, s, n, w->where, err);

	if (rc)
		return rc;
	model = pen__jdoc_get(&d, 0, "model");
	if (pen__jdoc_type(&d, model) == PEN_JDOC_OBJECT)
		at = pen__jdoc_get(&d, model, "vocab");
	rc = pen__words_parse(w, &d, at, w->where, err);
	pen__jdoc_close(&d);
	return rc;
}

int pen__words_load(struct pen_words *w, const char *path, struct pen_err *err)
{
	char *bytes;
	size_t n;
	int rc = pen__words_slurp(path, FILE_LIMIT, &bytes, &n, err);

	*w = (struct pen_words){ 0 };
	if (rc)
		return rc;
	w->where = pen__strdup(path);
	if (!w->where)
		rc = pen__fail_nomem(err, path, strlen(path));
	else if (bytes[strspn(bytes, " \t\r\n")] == '{')
		rc = parse_json(w, bytes, n, err);
	else
		rc = parse_lines(w, bytes, n, err);
	pen__free(bytes);
	if (!rc && !w->n)
		rc = pen__fail(err, PEN_EDATA, path, "has no words");
	if (rc)
		pen__words_fini(w);
	return rc;
}
