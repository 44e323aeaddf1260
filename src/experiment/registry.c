/*
 * The list of experiments, and the parser of experiments.txt, which is compiled
 * in and holds the help, flags, tables and charts of each.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "experiment/harness.h"

#define MOST_PIECES 7	  /* of a line */
#define ROOM (128 * 1024) /* for all lines, after including parts */

struct pen_experiment *const pen__experiments[] = {
	&pen__exp_blocks,     &pen__exp_read_chunks, &pen__exp_prefetch,
	&pen__exp_batch_size, &pen__exp_formats,     &pen__exp_shuffle,
	&pen__exp_startup,    &pen__exp_resume,	     &pen__exp_mmap,
	&pen__exp_neighbour,  &pen__exp_overlap,     &pen__exp_workers,
	&pen__exp_iterate,    &pen__exp_prealloc,    &pen__exp_memory,
	&pen__exp_headspace,  &pen__exp_dna,	     NULL,
};

static struct pen_experiment *find(const char *name)
{
	for (size_t i = 0; pen__experiments[i]; i++)
		if (!strcmp(pen__experiments[i]->kind.experiment, name))
			return pen__experiments[i];
	return strcmp(name, "sweep") != 0 ? NULL : &pen__exp_sweep;
}

const struct pen_kind *pen__kind_of(const char *experiment)
{
	const struct pen_experiment *x = find(experiment);

	return x ? &x->kind : NULL;
}

/* Splits a string at `by`; returns the number of pieces. */
static size_t cut(char *text, const char *by, char **to, size_t most)
{
	size_t n = 0;

	while (text && n < most) {
		char *end = strstr(text, by);

		to[n++] = text;
		if (end) {
			*end = '\0';
			end += strlen(by);
		}
		text = end;
	}
	return n;
}

/* ---- flags ---- */

static const struct {
	const char *name;
	enum pen_takes takes;
	size_t many;
	double most;
} types[] = {
	{ "switch", PEN_TAKES_NOTHING, 1, 0 },
	{ "text", PEN_TAKES_TEXT, 1, 0 },
	{ "count", PEN_TAKES_COUNTS, 1, 0 },
	{ "counts", PEN_TAKES_COUNTS, PEN_MOST_VALUES, 0 },
	{ "size", PEN_TAKES_SIZES, 1, 0 },
	{ "sizes", PEN_TAKES_SIZES, PEN_MOST_VALUES, 0 },
	{ "ms", PEN_TAKES_MS, PEN_MOST_VALUES, 1e5 },
	{ "time", PEN_TAKES_TIME, 1, 0 },
	{ "name", PEN_TAKES_NAMES, 1, 0 },
	{ "names", PEN_TAKES_NAMES, PEN_MOST_VALUES, 0 },
	{ "any", PEN_TAKES_ANY, 1, 0 },
};
#define NTYPES (sizeof(types) / sizeof(types[0]))

/* "counts 0..99 =", "names raw,csr" */
static bool set_type(struct pen_flag *f, char *text)
{
	const char *dflt = strstr(f->help, "(default ");
	char *word[3], *range[2];
	const size_t n = cut(text, " ", word, 3);
	size_t i = 0;

	while (i < NTYPES && strcmp(types[i].name, word[0]) != 0)
		i++;
	if (i == NTYPES)
		return false;
	f->takes = types[i].takes;
	f->many = types[i].many;
	f->most = types[i].most;
	for (i = 1; i < n; i++)
		if (!strcmp(word[i], "=") && dflt) {
			snprintf(f->preset, sizeof(f->preset), "%.*s",
				 (int)strcspn(dflt + 9, ")"), dflt + 9);
		} else if (f->takes == PEN_TAKES_NAMES) {
			cut(word[i], ",", f->names, PEN_MOST_NAMES);
		} else {
			if (cut(word[i], "..", range, 2) != 2)
				return false;
			f->least = strtod(range[0], NULL);
			f->most = strtod(range[1], NULL);
		}
	return true;
}

static bool add_flag(struct pen_experiment *x, char **piece, size_t n)
{
	struct pen_flag *f = &x->flag[x->nflags];
	char *arg = strchr(piece[0], ' ');

	if (n != 3 || x->nflags == PEN_MOST_FLAGS)
		return false;
	if (arg)
		*arg++ = '\0';
	f->name = piece[0];
	f->arg = arg;
	f->help = piece[2];
	x->nflags++;
	return set_type(f, piece[1]);
}

/* ---- lines ---- */

/* The pieces of a line fill a record that starts with string pointers; some
 * keywords have several records. */
#define OF(member) offsetof(struct pen_experiment, member)
#define RECORDS(word, member, least, most)                                     \
	{                                                                      \
		word, OF(member), least, most,                                 \
			sizeof(((struct pen_experiment *)NULL)->member),       \
			sizeof(((struct pen_experiment *)NULL)->member[0])     \
	}
#define RECORD(word, member, least, most)                                      \
	{                                                                      \
		word, OF(member), least, most, 1, 1                            \
	}
#define TEXT(word, member) RECORD(word, member, 1, 1)
static const struct {
	const char *word;
	size_t at, least, most; /* pieces */
	size_t bytes, each;	/* of all records, and one */
} words[] = {
	TEXT("title", kind.title),
	TEXT("columns", kind.columns),
	TEXT("runs", kind.runs),
	TEXT("by", kind.by),
	TEXT("args", args),
	TEXT("summary", summary),
	TEXT("about", about),
	TEXT("settings", settings),
	TEXT("shape", shape),
	TEXT("workers", kind.versus.workers),
	RECORD("versus", kind.versus, 5, 7),
	RECORD("vary", vary, 2, 2),
	RECORD("preset", preset, 2, 2),
	RECORDS("example", examples, 2, 2),
	RECORDS("sets", sets, 1, 2),
	RECORDS("refuse", refuses, 2, 2),
	RECORDS("chart", kind.chart, 3, 3),
	RECORDS("best", kind.best, 2, 5),
};
_Static_assert(offsetof(struct pen_versus, vars) == 4 * sizeof(char *) &&
		       offsetof(struct pen_ranking, also) == 4 * sizeof(char *),
	       "string pointers come first");

static bool keep(struct pen_experiment *x, const char *word, char **piece,
		 size_t n)
{
	size_t i = 0, at, last;

	while (i < sizeof(words) / sizeof(words[0]) &&
	       strcmp(words[i].word, word) != 0)
		i++;
	if (i == sizeof(words) / sizeof(words[0]) || n < words[i].least ||
	    n > words[i].most)
		return false;
	/* the last of several records stays empty and ends them */
	last = words[i].bytes - words[i].each;
	for (at = 0; at == 0 || at < last; at += words[i].each) {
		char *to = (char *)x + words[i].at + at;
		const char *there;

		memcpy(&there, to, sizeof(there));
		if (there)
			continue;
		memcpy(to, piece, n * sizeof(*piece));
		return true;
	}
	return false;
}

/* Copies the next line, with its continuation lines, into the room; NULL: no
 * line, or no room left. */
static char *next_line(const char **at, char **room, size_t *left)
{
	const char *from = *at;
	char *line = *room, *to = line;

	while (*from == '#' || *from == '\n')
		from += *from == '#' ? strcspn(from, "\n") : 1;
	for (;;) {
		const size_t n = strcspn(from, "\n");

		if (n + 2 > *left)
			return NULL;
		memcpy(to, from, n);
		to += n;
		from += n;
		*left -= n + 1;
		if (!*from || from[1] != ' ')
			break;
		*to++ = ' ';
		from += 1 + strspn(from + 1, " ");
	}
	*to++ = '\0';
	*at = from;
	*room = to;
	return *line ? line : NULL;
}

static const char *read_lines(struct pen_experiment *, const char *at);

/* Reads the included parts. */
static bool take_in(struct pen_experiment *x, char **part, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char head[40];
		const char *at;

		snprintf(head, sizeof(head), "\npart     %s\n", part[i]);
		at = strstr(pen__experiments_txt, head);
		if (!at || read_lines(x, at + strlen(head)))
			return false;
	}
	return true;
}

/* Reads the lines of an experiment or a part; returns NULL, or the first line
 * that is not valid. */
static const char *read_lines(struct pen_experiment *x, const char *at)
{
	static char room[ROOM], *end = room;
	static size_t left = ROOM;
	const char *was = at;
	char *line;

	for (; (line = next_line(&at, &end, &left)); was = at) {
		const bool with = !strncmp(line, "with ", 5);
		char *value = line + strcspn(line, " "), *piece[MOST_PIECES];
		size_t n;
		bool ok;

		if (!*value)
			return was;
		*value++ = '\0';
		if (!strcmp(line, "experiment") || !strcmp(line, "part"))
			return NULL;
		n = cut(value + strspn(value, " "), with ? ", " : " | ", piece,
			MOST_PIECES);
		ok = with		    ? take_in(x, piece, n)
		     : strcmp(line, "flag") ? keep(x, line, piece, n)
					    : add_flag(x, piece, n);
		if (!ok)
			return was;
	}
	return *at ? was : NULL; /* no room for the rest */
}

int pen__experiments_read(struct pen_err *err)
{
	static const char head[] = "\nexperiment ";
	const char *at = pen__experiments_txt, *wrong;

	if (pen__experiments[0]->kind.title)
		return 0;
	while ((at = strstr(at, head))) {
		const size_t n = strcspn(at += sizeof(head) - 1, "\n");
		char name[40];
		struct pen_experiment *x;

		snprintf(name, sizeof(name), "%.*s", (int)n, at);
		x = find(name);
		wrong = x ? read_lines(x, at + n) : at;
		if (wrong)
			return pen__fail(err, P_BAD_VALUE, "experiments.txt",
					 "%s: the line '%.40s' is not valid",
					 name, wrong + strspn(wrong, "\n"));
	}
	return 0;
}
