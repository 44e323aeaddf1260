/* gen, sequences: one file of letters, made by all threads. */
#include <string.h>

#include "base/clock.h"
#include "base/stale.h"
#include "cli/gen.h"
#include "make/synth.h"
#include "make/synth_seqs.h"

static const char *const kinds[] = { "dna", "rna", "dna+rna", "protein",
				     "dna+at" };

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
		print_line(2, NULL, "%s: %s, %s, %s in %s (%s/s)%s%s", g->path,
			   counted(m->records, "sequence"),
			   counted(m->letters, "letter"),
			   human_bytes((double)m->bytes), human_time(s),
			   human_bytes((double)m->bytes / s),
			   g->hint[0] ? "; load it with " : "", g->hint);
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
	pen__json_str(&j, "load_with", g->hint);
	pen__json_close(&j, '}');
	return text_out(&j, NULL);
}

/* lines, unless format= or the suffix says fasta. */
static int settle_format(struct gen *g, bool *fasta, struct pen_err *err)
{
	const char *by_name = pen_format_for(g->path);
	const char *name = g->format ? g->format : by_name ? by_name : "lines";
	const size_t n = strlen(g->path);

	*fasta = !strcmp(name, "fasta");
	if (!by_name)
		snprintf(g->hint, sizeof(g->hint), "format=%s", name);
	if (n > 3 && !strcmp(g->path + n - 3, ".gz"))
		return pen__fail(err, P_CANNOT_WRITE_THIS, g->path,
				 "cannot write compressed files; omit .gz and "
				 "run bgzip afterwards");
	if (!*fasta && strcmp(name, "lines") != 0)
		return pen__fail(err, P_CANNOT_WRITE_THIS, name,
				 "cannot be generated from random letters; use "
				 "lines or fasta");
	/* lines are text, so .txt is fine */
	if (n > 4 && !strcmp(g->path + n - 4, ".txt"))
		return 0;
	return gen_check_name(g, name, err);
}

static int write_file(struct gen *g, const struct pen_synth_seqs *s,
		      struct pen_synth_made *made, struct pen_err *err)
{
	int rc;

	pen__stale_remove(g->path); /* left by a killed run */
	progress_start(&g->progress, "bytes", g->size);
	rc = pen__synth_seqs_make(s, g->maker, g->path, made, err);
	progress_end(&g->progress);
	return rc;
}

int gen_seqs(struct gen *g)
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
		return complain_usage(
			P_CONFLICT, "gen",
			"sequences are written to one file; omit files=");
	while (strcmp(g->kind, kinds[s.letters]) != 0)
		s.letters++;
	if (!s.length)
		s.length = s.letters != PEN_SYNTH_PROTEIN ? 1024 : 300;
	g->single = true;
	rc = pen__maker_open(&g->maker, g->store, g->for_store.kv,
			     g->for_store.n, &err);
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
