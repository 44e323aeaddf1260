/*
 * Parses block sizes. Sizes that do not divide are refused: a rounded grid
 * would not measure what its labels state.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/opt.h"
#include "experiment/experiment.h"

#define MAX_GRID 4096
#define MAX_ROWS ((uint64_t)1 << 40)

static int refuse(const char *text, const char *why, struct pen_err *err)
{
	return pen__fail(err, P_BAD_VALUE, text,
			 "%s; write a block as C, NxC, B/N or B/[lo,hi], such "
			 "as 2000x64 or 65536/[1,4096]",
			 why);
}

static int add(struct pen_block_sizes b, struct pen_block_sizes **list,
	       size_t *n, const char *text, struct pen_err *err)
{
	struct pen_block_sizes *more;

	for (size_t i = 0; i < *n; i++)
		if ((*list)[i].chunk == b.chunk &&
		    (*list)[i].chunks == b.chunks)
			return 0;
	if (*n >= MAX_GRID)
		return refuse(text, "there are more than 4,096 blocks", err);
	more = pen__realloc(*list, *n + 1, sizeof(*more));
	if (!more)
		return pen__fail_nomem(err, text, sizeof(*more));
	*list = more;
	more[(*n)++] = b;
	return 0;
}

/* Parses a positive number that ends at one of `ends`, and moves there. */
static bool number(const char **s, const char *ends, uint64_t *out)
{
	const size_t n = strcspn(*s, ends);
	char buf[32];

	if (n >= sizeof(buf))
		return false;
	memcpy(buf, *s, n);
	buf[n] = '\0';
	*s += n;
	return !pen__parse_count(buf, out) && *out && *out <= MAX_ROWS;
}

static int add_split(uint64_t rows, uint64_t chunks,
		     struct pen_block_sizes **list, size_t *n, const char *text,
		     struct pen_err *err)
{
	char why[96];

	if (rows % chunks) {
		snprintf(why, sizeof(why),
			 "%" PRIu64 " rows cannot be divided into %" PRIu64
			 " chunks",
			 rows, chunks);
		return refuse(text, why, err);
	}
	return add((struct pen_block_sizes){ rows / chunks, chunks }, list, n,
		   text, err);
}

static int add_range(uint64_t rows, const char *s,
		     struct pen_block_sizes **list, size_t *n, const char *text,
		     struct pen_err *err)
{
	uint64_t lo, hi;
	int rc = 0;

	if (!number(&s, ",", &lo) || *s++ != ',' || !number(&s, "]", &hi) ||
	    strcmp(s, "]") != 0)
		return refuse(text, "not a valid block", err);
	if ((lo & (lo - 1)) || (hi & (hi - 1)))
		return refuse(text,
			      "a range must start and end with a power of 2",
			      err);
	for (uint64_t c = lo; !rc; c = lo < hi ? c * 2 : c / 2) {
		rc = add_split(rows, c, list, n, text, err);
		if (c == hi)
			break;
	}
	return rc;
}

int pen__blocks_parse(const char *text, struct pen_block_sizes **list,
		      size_t *n, struct pen_err *err)
{
	char buf[128];
	const char *s = buf;
	uint64_t a, b;
	size_t at = 0;

	for (const char *c = text; *c; c++) {
		if (at + 1 >= sizeof(buf))
			return refuse("block", "the block is too long", err);
		if (*c != ' ' && *c != '\t')
			buf[at++] = *c;
	}
	buf[at] = '\0';
	if (!number(&s, "x/", &a))
		return refuse(text, "not a valid block", err);
	if (!*s)
		return add((struct pen_block_sizes){ a, PEN_CENSUS_CHUNKS },
			   list, n, text, err);
	if (s[0] == '/' && s[1] == '[')
		return add_range(a, s + 2, list, n, text, err);
	if (*s++ == 'x')
		return number(&s, "", &b) && b <= MAX_ROWS / a
			       ? add((struct pen_block_sizes){ b, a }, list, n,
				     text, err)
			       : refuse(text, "not a valid block", err);
	if (!number(&s, "", &b))
		return refuse(text, "not a valid block", err);
	return add_split(a, b, list, n, text, err);
}
