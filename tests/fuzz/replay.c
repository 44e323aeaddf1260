/*
 * Runs harnesses on files, without libFuzzer:
 *
 *   fuzz_replay list                   the names of all harnesses
 *   fuzz_replay CORPUS [HARNESS...]    all files of CORPUS/HARNESS
 *
 * Fails if a harness has no files: a parser that is not tried.
 */
#include "fuzz.h"

#include <dirent.h>
#include <sys/stat.h>

static void replay(const struct fuzz *f, const char *path)
{
	FILE *in = fopen(path, "rb");
	struct stat st;
	uint8_t *p;
	size_t n;

	FUZZ_MUST(in && !fstat(fileno(in), &st));
	n = (size_t)st.st_size;
	p = malloc(n ? n : 1); /* exactly, for the address sanitizer */
	FUZZ_MUST(p && fread(p, 1, n, in) == n);
	fclose(in);
	/* the last line, if a sanitizer or abort() ends the program */
	printf("%s\n", path);
	fflush(stdout);
	f->run(f->of, p, n);
	free(p);
}

static unsigned replay_all(const struct fuzz *f, const char *corpus)
{
	struct dirent **names = NULL;
	char dir[4096], path[4200];
	unsigned files = 0;
	int n;

	snprintf(dir, sizeof(dir), "%s/%s", corpus, f->name);
	n = scandir(dir, &names, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		if (names[i]->d_name[0] != '.') {
			snprintf(path, sizeof(path), "%s/%.90s", dir,
				 names[i]->d_name);
			replay(f, path);
			files++;
		}
		free(names[i]);
	}
	free(names);
	return files;
}

int main(int argc, char **argv)
{
	unsigned all = 0, empty = 0;

	if (argc < 2) {
		fprintf(stderr, "usage: %s list | CORPUS [HARNESS...]\n",
			argv[0]);
		return 2;
	}
	for (unsigned i = 0; fuzz_at(i); i++) {
		const struct fuzz *f = fuzz_at(i);
		bool wanted = argc == 2;
		unsigned n;

		for (int k = 2; k < argc; k++)
			wanted |= strcmp(argv[k], f->name) == 0;
		if (!strcmp(argv[1], "list"))
			printf("%s\n", f->name);
		if (!strcmp(argv[1], "list") || !wanted)
			continue;
		n = replay_all(f, argv[1]);
		if (!n) {
			fprintf(stderr,
				"%s/%s: no inputs; see CONTRIBUTING.md\n",
				argv[1], f->name);
			empty++;
		}
		all += n;
	}
	if (strcmp(argv[1], "list") != 0)
		printf("%u inputs\n", all);
	return empty || (!all && strcmp(argv[1], "list")) ? 1 : 0;
}
