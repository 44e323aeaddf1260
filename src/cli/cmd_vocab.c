/*
 * vocab: the words of k letters that sequences have, and how often, as a file
 * that tokenisers read. The work is engine/vocab.c's.
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
	{ "-o", "FILE", "where to; there already: it is replaced" },
	{ "--json", NULL, "for programs" },
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
	printf("%s: %s (%s seen) of %s in %s, from %s (%s letters/s)\n",
	       shown(v->out), counted(r->facts.nwords, "word"),
	       grouped(r->facts.nseen), counted((uint64_t)v->opts.k, "letter"),
	       human_time(r->seconds), counted(r->nsamples, "sequence"),
	       human_count(r->seconds > 0 ? (double)r->nletters / r->seconds
					  : 0));
	if (r->facts.nrare)
		printf("  left out: %s seen less than min_count=%s\n",
		       counted(r->facts.nrare, "word"),
		       grouped(v->opts.min_count));
	if (r->facts.nothers)
		printf("  left out: %s with letters that are not in %s\n",
		       counted(r->facts.nothers, "place"),
		       shown(v->opts.alphabet));
}

/* Is it one of the files that are counted? */
static bool is_read(const struct pen_spec *spec, const struct stat *out)
{
	struct stat st;

	for (uint64_t i = 0; pen_spec_path(spec, i); i++)
		if (!stat(pen_spec_path(spec, i), &st) &&
		    st.st_ino == out->st_ino && st.st_dev == out->st_dev)
			return true;
	return false;
}

/* Counting may take long: what cannot be written is said before. */
static int check_out(const struct pen_spec *spec, const char *path)
{
	const char *slash = strrchr(path, '/');
	struct pen_err err = { 0 };
	struct stat st;
	char dir[4096];

	snprintf(dir, sizeof(dir), "%.*s", slash ? (int)(slash - path + 1) : 1,
		 slash ? path : ".");
	if (access(dir, W_OK))
		pen__fail_sys(&err, errno, path, "cannot be written");
	else if (!stat(path, &st) && !S_ISREG(st.st_mode))
		pen__fail(&err, PEN_EINVAL, path, "is not a file");
	else if (!stat(path, &st) && is_read(spec, &st))
		pen__fail(&err, PEN_EINVAL, path,
			  "is what is read: give another name to -o");
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
		rc = complain_usage("vocab: of what, and where to? penstock "
				    "vocab PATH... -o FILE");
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
	"all 4-mers and those that X before and Y after a sequence are part "
	"of, for format.tokens=dm",
	"penstock vocab genome.fa k=6 alphabet=ACGT specials=pad,unk -o w.txt",
	"words of 6 letters after two special tokens, for format.tokens=kmers",
	"penstock vocab reads.fastq k=12 alphabet=ACGT min_count=100 -o w.txt",
	"only what was seen a hundred times",
	NULL,
};

const struct command pen__cmd_vocab = {
	.name = "vocab",
	.args = "PATH... [key=value ...] -o FILE [--json]",
	.summary = "count the words of sequences: a vocabulary for tokenisers",
	.about = "Counts all words of k letters that the sequences of any "
		 "format have, with all CPUs, and writes them to a file: a "
		 "word and its count a line, in the order of text, after the "
		 "special tokens. The number of a word is the number of its "
		 "line, from 0, not counting lines that begin with '# '. "
		 "Loaders take the file by format.vocab=FILE. The file has "
		 "its name only when it is complete.",
	.flags = flags,
	.opts = pen__count_opts,
	.takes_spec = true,
	.examples = examples,
	.run = run_vocab,
};
