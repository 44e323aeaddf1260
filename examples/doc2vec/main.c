/*
 * doc2vec: paragraph vectors of sequences (distributed memory, negative
 * sampling), an example of a training program on penstock's public API. The
 * loader makes the tensors (target, context, noise words) and the model uses
 * them in place, without copying.
 */
#include <getopt.h>

#include "doc2vec.h"

int main(int argc, char **argv)
{
	struct pen_ranks *ranks;
	struct pen_err err = { 0 };
	struct options o;
	bool help = false;
	int rc;

	options_init(&o);
	rc = options_parse(&o, argc, argv, &help);
	if (rc)
		return rc;
	if (help) {
		fputs(doc2vec_usage, stdout);
		return 0;
	}
	if (optind == argc) {
		fputs("doc2vec: no PATH given; run doc2vec PATH... "
		      "format.vocab=FILE, or see doc2vec --help\n",
		      stderr);
		return 2;
	}
	rc = pen_ranks_open(&ranks, &err);
	if (!rc) {
		rc = doc2vec(&o, ranks, argv + optind, argc - optind, stdout,
			     &err);
		/* all ranks have the error: one prints it */
		if (rc && pen_ranks_rank(ranks))
			err.msg[0] = '\0';
		pen_ranks_close(ranks);
	}
	if (rc && err.msg[0])
		fprintf(stderr, "doc2vec: %s%s%s\n", err.where,
			err.where[0] ? ": " : "", err.msg);
	return rc ? 1 : 0;
}
