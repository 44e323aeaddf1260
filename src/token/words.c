/* See words.h. */
#include "token/words.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/show.h"

#define FILE_LIMIT (UINT64_C(1) << 30)
/* Ids in JSON may have gaps, but only few. */
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
		return pen__fail_sys(err, errno, path, "cannot open the file");
	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		rc = pen__fail(err, P_BAD_VALUE, path, "not a regular file");
	else if ((uint64_t)st.st_size > limit)
		rc = pen__fail(err, P_OVER_LIMIT, path,
			       "larger than the limit of %s",
			       pen__show_bytes((double)limit).s);
	else if (!(p = pen__alloc((size_t)st.st_size + 1, 1)))
		rc = pen__fail_nomem(err, path, (size_t)st.st_size + 1);
	while (!rc && got < (size_t)st.st_size) {
		const ssize_t m = read(fd, p + got, (size_t)st.st_size - got);

		if (m < 0 && errno == EINTR)
			continue;
		if (m < 0)
			rc = pen__fail_sys(err, errno, path,
					   "cannot read the file");
		if (m <= 0)
			break;
		got += (size_t)m;
	}
	close(fd);
	if (rc) {
		pen__free(p);
		return rc;
	}
	/* skip a UTF-8 byte order mark */
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

/* The slot of a word, or the empty slot where it would be. */
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
		return pen__fail(err, P_OVER_LIMIT, w->where, "too many words");
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

int pen__words_twice(const struct pen_words *w, uint32_t a, uint32_t b,
		     struct pen_err *err)
{
	return pen__fail(
		err, P_BAD_DATA_VALUE, w->where,
		"word %u, '%.40s', is also word %u; list each word once", b,
		pen__words_at(w, a), a);
}

/* True if the caller detects duplicates of this word. */
static bool is_unchecked(const struct pen_words *w, const char *s, size_t n)
{
	return w->unchecked && *s != '<' && *s != '[' &&
	       (w->unchecked == PEN_WORDS_ALL || w->unchecked == n);
}

/* Adds the next word, with id w->n. `at`: its number in the file, for
 * messages. */
static int append(struct pen_words *w, const char *s, size_t n, uint64_t at,
		  struct pen_err *err)
{
	uint32_t none = 0, *slot = &none;
	const uint32_t from = w->start[w->n];

	if (!n || n > PEN_WORD_LETTERS || memchr(s, '\0', n))
		return pen__fail(err, P_BAD_TEXT, w->where,
				 "word %llu is empty, longer than %u letters, "
				 "or contains a NUL byte",
				 (unsigned long long)at, PEN_WORD_LETTERS);
	if (!is_unchecked(w, s, n))
		slot = place(w, s, n);
	if (*slot && w->again)
		return 0;
	if (*slot)
		return pen__words_twice(w, *slot - 1, w->n, err);
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

/* Reads " k=4" in the first line: all words have 4 letters. */
static void take_remark(struct pen_words *w, const char *s, const char *end)
{
	const char *k = memmem(s, (size_t)(end - s), " k=", 3);
	uint32_t v = 0;

	for (k = k ? k + 3 : end; k < end && *k >= '0' && *k <= '9' && v < 100;)
		v = v * 10 + (uint32_t)(*k++ - '0');
	w->k = v <= 12 ? v : 0;
	if (w->k && w->unchecked && w->unchecked != PEN_WORDS_ALL)
		w->unchecked = w->k;
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
		if (line == 1)
			take_remark(w, s, end);
		return 0;
	}
	tab = memchr(s, '\t', (size_t)(end - s));
	rc = append(w, s, (size_t)((tab ? tab : end) - s), line, err);
	if (!rc && tab && parse_count(tab + 1, end, &w->count[w->n - 1]))
		rc = pen__fail(err, P_BAD_TEXT, w->where,
			       "line %llu: '%.20s' is not a count",
			       (unsigned long long)line, tab + 1);
	return rc;
}

#define EACH_BYTE(c) (UINT64_C(0x0101010101010101) * (c))

static uint64_t eight(const char *s)
{
	uint64_t v;

	memcpy(&v, s, 8);
	return v;
}

/* True if one of eight bytes is below 33, such as a blank or a line end. */
static bool has_low(const char *s)
{
	const uint64_t v = eight(s);

	return (v - EACH_BYTE(33)) & ~v & EACH_BYTE(0x80);
}

/*
 * Fast path for files with millions of words: an unchecked word, a tab and a
 * count. Returns the start of the next line, or NULL if parse_line() has to
 * parse this one. At least 32 more bytes of the file and of w->text are
 * readable.
 */
static const char *plain_line(struct pen_words *w, const char *s)
{
	const uint32_t n = w->unchecked, from = w->start[w->n];
	const char *p = s + n + 1;
	uint64_t v = 0;

	if (n < 8 || n > 12 || has_low(s) || has_low(s + n - 8) ||
	    s[n] != '\t' || *s == '<' || *s == '[' || *s == '#')
		return NULL;
	for (; p < s + n + 16 && *p >= '0' && *p <= '9'; p++)
		v = v * 10 + (uint64_t)(*p - '0');
	if (*p != '\n' || p == s + n + 1)
		return NULL;
	memcpy(w->text + from, s, 12);
	w->text[from + n] = '\0';
	w->count[w->n] = v;
	w->start[++w->n] = from + n + 1;
	if (n > w->longest)
		w->longest = n;
	return p + 1;
}

static uint64_t count_lines(const char *s, size_t n)
{
	uint64_t lines = 0;
	size_t i = 0;

	for (; i + 8 <= n; i += 8) {
		const uint64_t v = eight(s + i) ^ EACH_BYTE('\n');
		const uint64_t low = (v & EACH_BYTE(0x7f)) + EACH_BYTE(0x7f);

		/* the top bit of each byte is set where it is a '\n' */
		lines += (~(low | v | EACH_BYTE(0x7f)) >> 7) * EACH_BYTE(1) >>
			 56;
	}
	for (; i < n; i++)
		lines += s[i] == '\n';
	return lines;
}

static int parse_lines(struct pen_words *w, const char *s, size_t n,
		       struct pen_err *err)
{
	const char *const end = s + n, *next;
	uint64_t line = 0;
	int rc = reserve(w, count_lines(s, n) + 1, n, err);

	while (!rc && s < end) {
		line++;
		next = end - s >= 64 ? plain_line(w, s) : NULL;
		if (!next) {
			const char *stop = memchr(s, '\n', (size_t)(end - s));

			rc = parse_line(w, s, stop ? stop : end, line, err);
			next = stop ? stop + 1 : end;
		}
		s = next;
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
	return !rc && !w->n ? pen__fail(err, P_NOT_THIS_FORMAT, where,
					"no words found")
			    : rc;
}

/* Adds words in order of their ids; gaps become empty words. */
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
		return pen__fail(err, P_NOT_THIS_FORMAT, where,
				 "no JSON object of words and their ids");
	node = pen__alloc((size_t)(n + GAPS), sizeof(*node));
	if (!node)
		return pen__fail_nomem(err, where, (size_t)(n + GAPS) * 4);
	memset(node, 0xff, (size_t)(n + GAPS) * sizeof(*node));
	for (uint32_t x = pen__jdoc_first(d, object); x != PEN_JDOC_NONE && !rc;
	     x = pen__jdoc_next(d, x)) {
		const char *key = d->text + d->node[x].key;

		if (!pen__jdoc_count_of(d, x, &id) || id >= n + GAPS ||
		    node[id] != PEN_JDOC_NONE)
			rc = pen__fail(err, P_BAD_DATA_VALUE, where,
				       "the id of '%.40s' is not an integer, "
				       "too large, or already taken",
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

int pen__words_load(struct pen_words *w, const char *path, uint32_t unchecked,
		    struct pen_err *err)
{
	char *bytes;
	size_t n;
	int rc = pen__words_slurp(path, FILE_LIMIT, &bytes, &n, err);

	*w = (struct pen_words){ .unchecked = unchecked };
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
		rc = pen__fail(err, P_NOT_THIS_FORMAT, path, "no words found");
	if (rc)
		pen__words_fini(w);
	return rc;
}
