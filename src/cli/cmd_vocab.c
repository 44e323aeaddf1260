/*
 * vocab: counts the words of k letters in sequences and writes a vocabulary
 * file for tokenisers. make/count_vocab.c does the work.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "make/count_vocab.h"

struct vocab {
	struct pen_count_opts opts;
	struct pen_spec *spec;
	const char *out;
	bool json;
	size_t npaths;
	struct progress progress;
	bool started;
};

static const struct flag flags[] = {
	{ "-o", "FILE", "output file; an existing file is replaced" },
	{ "--json", NULL, "print the result as JSON" },
	{ NULL, NULL, NULL },
};

static int tick(void *arg, uint64_t done, uint64_t total, uint64_t bytes)
{
	struct vocab *v = arg;

	if (!v->started)
		progress_start(&v->progress, "sequences", total);
	v->started = true;
	progress_show(&v->progress, done,
		      total ? (double)bytes * (double)done / (double)total : 0);
	return interrupted();
}

static int take_arg(struct vocab *v, const struct args *a, int kind)
{
	struct pen_err err = { 0 };

	if (kind == ARG_BAD)
		return EXIT_USAGE;
	if (kind == ARG_FLAG && !strcmp(a->key, "-o"))
		v->out = a->value;
	else if (kind == ARG_FLAG)
		v->json = true;
	else if (kind == ARG_SETTING && pen__opt_find(pen__count_opts, a->key))
		return pen__opt_set(pen__count_opts, &v->opts, a->key, a->value,
				    &err)
			       ? complain(&err)
			       : -1;
	else
		return spec_arg(v->spec, a, kind);
	return -1;
}

static int print_json(const struct vocab *v, const struct pen_vocab_result *r)
{
	struct pen_text j = { 0 };

	pen__json_open(&j, NULL, '{');
	pen__json_str(&j, "schema", "penstock.vocab/1");
	pen__json_str(&j, "path", v->out);
	pen__json_int(&j, "words", r->facts.nwords);
	pen__json_int(&j, "seen", r->facts.nseen);
	pen__json_int(&j, "rare", r->facts.nrare);
	pen__json_int(&j, "unknown", r->facts.nothers);
	pen__json_int(&j, "sequences", r->nsamples);
	pen__json_int(&j, "letters", r->nletters);
	pen__json_int(&j, "k", (uint64_t)v->opts.k);
	pen__json_int(&j, "threads", r->threads);
	pen__json_num(&j, "seconds", r->seconds);
	pen__json_num(&j, "sequences_per_second",
		      r->seconds > 0 ? (double)r->nsamples / r->seconds : 0);
	pen__json_num(&j, "letters_per_second",
		      r->seconds > 0 ? (double)r->nletters / r->seconds : 0);
	pen__json_close(&j, '}');
	return text_out(&j, NULL);
}

static void print_text(const struct vocab *v, const struct pen_vocab_result *r)
{
	print_line(
		2, NULL, "%s: %s (%s seen) of %s in %s, from %s (%s letters/s)",
		v->out, counted(r->facts.nwords, "word"),
		grouped(r->facts.nseen), counted((uint64_t)v->opts.k, "letter"),
		human_time(r->seconds), counted(r->nsamples, "sequence"),
		human_count(r->seconds > 0 ? (double)r->nletters / r->seconds
					   : 0));
	if (r->facts.nrare)
		printf("  omitted: %s seen fewer than min_count=%s times\n",
		       counted(r->facts.nrare, "word"),
		       grouped(v->opts.min_count));
	if (r->facts.nothers)
		printf("  omitted: %s with letters that are not in %s\n",
		       counted(r->facts.nothers, "place"),
		       shown(v->opts.alphabet));
}

/* Is the output one of the input files? */
static bool is_read(const struct pen_spec *spec, const struct stat *out)
{
	struct stat st;

	for (uint64_t i = 0; pen_spec_path(spec, i); i++)
		if (!stat(pen_spec_path(spec, i), &st) &&
		    st.st_ino == out->st_ino && st.st_dev == out->st_dev)
			return true;
	return false;
}

/* Counting may take long, so check the output file first. */
static int check_out(const struct pen_spec *spec, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct pen_err err = { 0 };
	struct stat st;
	char dir[4096];

	snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path + 1) : 1,
		 slash ? path : ".");
	if (access(dir, W_OK))
		pen__fail_sys(&err, errno, path, "cannot write the output");
	else if (!stat(path, &st) && !S_ISREG(st.st_mode))
		pen__fail(&err, P_BAD_VALUE, path, "not a regular file");
	else if (!stat(path, &st) && is_read(spec, &st))
		pen__fail(&err, P_CONFLICT, path,
			  "is an input file; choose another name for -o");
	return err.code ? complain(&err) : -1;
}

static int build(struct vocab *v)
{
	const struct pen_vocab_job job = {
		.source = v->spec,
		.opts = &v->opts,
		.opened = warn_of,
		.tick = tick,
		.arg = v,
	};
	struct pen_vocab_result r;
	struct pen_text text = { 0 };
	struct pen_err err = { 0 };
	int rc = pen__vocab_build(&job, &text, &r, &err);

	if (v->started)
		progress_end(&v->progress);
	if (!rc)
		rc = pen__text_save(&text, v->out, &err);
	pen__text_fini(&text);
	if (interrupted())
		return 128 + interrupted();
	if (rc)
		return complain(&err);
	if (v->json)
		return print_json(v, &r);
	print_text(v, &r);
	return EXIT_OK;
}

static int run_vocab(int argc, char **argv)
{
	struct args a = { .cmd = &pen__cmd_vocab, .argc = argc, .argv = argv };
	struct vocab v = { 0 };
	struct pen_err err = { 0 };
	int kind, rc = -1;

	if (pen__opt_defaults(pen__count_opts, &v.opts, &err) ||
	    pen_spec_new(&v.spec, &err))
		rc = complain(&err);
	while (rc < 0 && (kind = args_next(&a)) != ARG_END) {
		v.npaths += kind == ARG_PATH;
		rc = take_arg(&v, &a, kind);
	}
	if (rc < 0 && (!v.npaths || !v.out))
		rc = complain_usage(P_MISSING_SETTING, "vocab",
				    "needs input and output: penstock vocab "
				    "PATH... -o FILE");
	if (rc < 0)
		rc = check_out(v.spec, v.out);
	if (rc < 0)
		rc = build(&v);
	pen_spec_free(v.spec);
	pen__opt_fini(pen__count_opts, &v.opts);
	return rc;
}

static const char *const examples[] = {
	"penstock vocab reads.txt format=lines k=4 pads=true -o words.txt",
	"all 4-mers, including those with the pads X before and Y after a "
	"sequence, for format.tokens=dm",
	"penstock vocab genome.fa k=6 alphabet=ACGT specials=pad,unk -o w.txt",
	"words of 6 letters after two special tokens, for format.tokens=kmers",
	"penstock vocab reads.fastq k=12 alphabet=ACGT min_count=100 -o w.txt",
	"only words seen at least a hundred times",
	NULL,
};

const struct command pen__cmd_vocab = {
	.name = "vocab",
	.args = "PATH... [key=value ...] -o FILE [--json]",
	.summary = "count the words of sequences to build a vocabulary",
	.about = "Counts all words of k letters in sequences of any format, "
		 "with all CPUs, and writes them to a file: one word and its "
		 "count per line, in alphabetical order, after the special "
		 "tokens. The number of a word is its line number, from 0, not "
		 "counting lines that start with '# '. Loaders read the file "
		 "with format.vocab=FILE. The file gets its final name only "
		 "when it is complete.",
	.flags = flags,
	.opts = pen__count_opts,
	.takes_spec = true,
	.examples = examples,
	.run = run_vocab,
};
