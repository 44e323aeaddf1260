/* gen, sequences: one file of letters, made by all threads. */
#include <string.h>

#include "base/clock.h"
#include "cli/gen.h"
#include "engine/synth.h"
#include "engine/synth_seqs.h"

static const char *const kinds[] = { "dna", "rna", "dna+rna", "protein" };

const char *gen_kind(const char *word)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(word, kinds[i]))
			return kinds[i];
	return NULL;
}

static int tick(void *arg, uint64_t bytes)
{
	struct gen *g = arg;

	progress_show(&g->progress, bytes, 0);
	return interrupted();
}

static int report(const struct gen *g, const struct pen_synth_made *m, double s)
{
	struct pen_text j = { 0 };

	if (!g->json) {
		printf("%s: %s sequences, %s letters, %s in %s (%s/s)\n",
		       shown(g->path), grouped(m->records), grouped(m->letters),
		       human_bytes((double)m->bytes), human_time(s),
		       human_bytes((double)m->bytes / s));
		return EXIT_OK;
	}
	pen__json_open(&j, NULL, '{');
	pen__json_str(&j, "schema", "penstock.gen/1");
	pen__json_str(&j, "path", g->path);
	pen__json_int(&j, "files", 1);
	pen__json_int(&j, "samples", m->records);
	pen__json_int(&j, "letters", m->letters);
	pen__json_int(&j, "bytes", m->bytes);
	pen__json_num(&j, "seconds", s);
	pen__json_close(&j, '}');
	return text_out(&j, NULL);
}

/* lines, unless it is asked for as fasta or named so. */
static int settle_format(struct gen *g, bool *fasta, struct pen_err *err)
{
	const struct pen_format_ops *by_name = pen__format_for(g->path);
	const char *name = g->format ? g->format
			   : by_name ? by_name->name
				     : "lines";
	const size_t n = strlen(g->path);

	*fasta = !strcmp(name, "fasta");
	if (n > 3 && !strcmp(g->path + n - 3, ".gz"))
		return pen__fail(err, PEN_EINVAL, g->path,
				 "is not packed here: make it without .gz, "
				 "then use bgzip");
	if (!*fasta && strcmp(name, "lines") != 0)
		return pen__fail(err, PEN_EINVAL, name,
				 "is not made of random letters: use lines or "
				 "fasta");
	return 0;
}

static int write_file(struct gen *g, const struct pen_synth_seqs *s,
		      struct pen_synth_made *made, struct pen_err *err)
{
	struct pen_sink *sink = NULL;
	int rc = pen__sink_open(&sink, g->st, g->path, err), end;

	if (rc)
		return rc;
	progress_start(&g->progress, "bytes", g->size);
	rc = pen__synth_seqs_write(s, sink, made, err);
	progress_end(&g->progress);
	end = pen__sink_close(sink, !rc, rc ? NULL : err);
	return rc ? rc : end;
}

int gen_seqs(struct gen *g, const struct pen_pairs *for_store)
{
	struct pen_synth_seqs s = { .seed = g->seed,
				    .size = g->size,
				    .length = g->length,
				    .realistic = g->lengths,
				    .threads = (unsigned)g->threads,
				    .tick = tick,
				    .arg = g };
	const uint64_t t0 = pen__now_ns();
	struct pen_synth_made made;
	struct pen_err err = { 0 };
	int rc;

	if (g->files != 1)
		return complain_usage("gen: sequences go into one file");
	while (strcmp(g->kind, kinds[s.letters]) != 0)
		s.letters++;
	if (!s.length)
		s.length = s.letters != PEN_SYNTH_PROTEIN ? 1024 : 300;
	g->single = true;
	rc = pen__store_open(&g->st, g->store, for_store->kv, for_store->n,
			     &err);
	if (!rc && !g->st->ops->sink_open)
		rc = pen__fail(&err, PEN_EINVAL, g->store, "cannot write");
	if (!rc)
		rc = settle_format(g, &s.fasta, &err);
	if (!rc)
		rc = gen_check_target(g, &err);
	if (!rc && strcmp(g->store, "null") != 0)
		rc = pen__synth_space(g->path, g->size, &err);
	if (!rc)
		rc = write_file(g, &s, &made, &err);
	if (interrupted())
		return 128 + interrupted();
	if (rc)
		return complain(&err);
	return report(g, &made, (double)(pen__now_ns() - t0) / 1e9);
}
