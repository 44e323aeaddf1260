/* explain: what an error number means, from docs/errors.md. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"

#define MOST 256 /* sections */

extern const char pen__errors_md[]; /* docs/errors.md; see Assets.cmake */

/* A section "## P042: title" and its text, up to the next heading. */
struct section {
	char name[16]; /* "P042" */
	const char *title, *text, *end;
};

static const char *next_line(const char *p)
{
	p += strcspn(p, "\n");
	return p + (*p == '\n');
}

static size_t find_sections(struct section *s)
{
	size_t n = 0;

	for (const char *p = pen__errors_md; *p; p = next_line(p)) {
		if (strncmp(p, "## ", 3))
			continue;
		if (n && !s[n - 1].end)
			s[n - 1].end = p;
		if (n == MOST || p[3] != 'P' || strcspn(p + 3, ":") > 12)
			continue;
		s[n] = (struct section){ .title = p + 3, .text = next_line(p) };
		snprintf(s[n].name, sizeof(s[n].name), "%.*s",
			 (int)strcspn(p + 3, ":"), p + 3);
		n++;
	}
	if (n && !s[n - 1].end)
		s[n - 1].end = pen__errors_md + strlen(pen__errors_md);
	return n;
}

static bool is_code(const char *line)
{
	return !strncmp(line, "    ", 4) || !strncmp(line, "```", 3) ||
	       *line == '|';
}

/* Prints a paragraph or list item, and returns what follows it. */
static const char *print_block(const char *p, const char *end)
{
	const bool item = !strncmp(p, "- ", 2);
	struct pen_text t = { 0 };

	do {
		pen__text_add(&t, "%.*s ", (int)strcspn(p, "\n"), p);
		p = next_line(p);
	} while (p < end && *p != '\n' && strncmp(p, "- ", 2) && !is_code(p));
	print_wrapped(stdout, t.p ? t.p : "", 0, item ? 2 : 0);
	pen__text_fini(&t);
	return p;
}

static void print_section(const struct section *s)
{
	bool fenced = false;

	printf("%.*s\n", (int)strcspn(s->title, "\n"), s->title);
	for (const char *p = s->text, *end = s->end; p < end;) {
		while (end > p && end[-1] == '\n' && end[-2] == '\n')
			end--;
		if (!strncmp(p, "```", 3)) {
			fenced = !fenced;
			p = next_line(p);
		} else if (fenced || is_code(p) || *p == '\n') {
			printf("%s%.*s\n", fenced ? "    " : "",
			       (int)strcspn(p, "\n"), p);
			p = next_line(p);
		} else {
			p = print_block(p, end);
		}
	}
}

/* "42", "p042" and "P42" are P042. */
static void full_name(const char *word, char *name, size_t cap)
{
	const char *digits = word + (*word == 'P' || *word == 'p');
	const size_t n = strlen(digits);

	if (n && n < 6 && strspn(digits, "0123456789") == n)
		snprintf(name, cap, "P%03ld", strtol(digits, NULL, 10));
	else
		snprintf(name, cap, "%s", word);
}

static int explain(const char *word, const struct section *s, size_t n)
{
	const char *names[MOST + 1] = { NULL }, *near;
	char name[64];

	full_name(word, name, sizeof(name));
	for (size_t i = 0; i < n; i++) {
		names[i] = s[i].name;
		if (strcmp(s[i].name, name))
			continue;
		print_section(&s[i]);
		return EXIT_OK;
	}
	near = pen__nearest(name, names);
	return complain_usage(P_UNKNOWN_NAME, "explain",
			      near ? "unknown error '%s'; did you mean '%s'?"
				   : "unknown error '%s'; `penstock %s` lists "
				     "all",
			      name, near ? near : "explain");
}

static int run(int argc, char **argv)
{
	struct args a = { .cmd = &pen__cmd_explain,
			  .argc = argc,
			  .argv = argv };
	static struct section s[MOST];
	const size_t n = find_sections(s);
	const char *word = NULL;
	int kind;

	while ((kind = args_next(&a)) != ARG_END) {
		if (kind == ARG_BAD)
			return EXIT_USAGE;
		if (word || kind != ARG_PATH)
			return complain_usage(P_BAD_VALUE, "explain",
					      "takes one NUMBER, found also "
					      "'%s'",
					      argv[a.at - 1]);
		word = a.value;
	}
	if (word)
		return explain(word, s, n);
	for (size_t i = 0; i < n; i++)
		printf("%.*s\n", (int)strcspn(s[i].title, "\n"), s[i].title);
	return EXIT_OK;
}

const char *explain_name(size_t i)
{
	static struct section s[MOST];
	static size_t n;

	if (!n)
		n = find_sections(s);
	return i < n ? s[i].name : NULL;
}

static const char *const examples[] = {
	"penstock explain P101",
	"the meaning, causes and remedies of error P101",
	"penstock explain",
	"list all errors",
	NULL,
};

const struct command pen__cmd_explain = {
	.name = "explain",
	.args = "[NUMBER]",
	.summary = "explain an error number such as P101",
	.about = "Error messages end with a number in brackets, such as "
		 "[P101]. Prints what the error means, its usual causes and "
		 "what to do. Without NUMBER, lists all errors.",
	.examples = examples,
	.run = run,
};
