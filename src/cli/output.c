/* What people and programs see: messages, numbers, progress, JSON, files. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"

static bool muted;

void mute(bool on)
{
	muted = on;
}

int exit_code(int code)
{
	switch (code) {
	case PEN_EINVAL:
		return EXIT_USAGE;
	case PEN_EDATA:
	case PEN_ENOTSUP:
		return EXIT_DATA;
	case PEN_EIO:
	case PEN_ENOTFOUND:
	case PEN_ESTALE:
		return EXIT_IO;
	default:
		return EXIT_FAILED;
	}
}

const char *shown(const char *s)
{
	static char buf[4][16384];
	static unsigned i;
	char *b;

	if (pen__is_plain(s))
		return s;
	b = buf[i++ % 4];
	if (!pen__quote(b, sizeof(buf[0]) - 3, s))
		memcpy(b + strlen(b), "...", 4);
	return b;
}

void print_lines(const char *text)
{
	while (*text) {
		const size_t n = strcspn(text, "\n");
		struct pen_text in = { 0 }, out = { 0 };

		pen__text_put(&in, text, n);
		pen__text_quote(&out, in.p ? in.p : "");
		if (out.p)
			fputs(out.p, stdout);
		if (text[n])
			putchar('\n');
		text += n + !!text[n];
		pen__text_fini(&in);
		pen__text_fini(&out);
	}
}

int complain(const struct pen_err *err)
{
	if (!muted)
		fprintf(stderr, "penstock: %s%s%s\n", shown(err->where),
			err->where[0] ? ": " : "", shown(err->msg));
	return exit_code(err->code);
}

int complain_usage(const char *fmt, ...)
{
	char text[8192];
	va_list ap;

	if (muted)
		return EXIT_USAGE;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "penstock: %s\n", shown(text));
	return EXIT_USAGE;
}

/* A few buffers in turn, so that one printf can use several. */
static char *next_buf(void)
{
	static char buf[16][48];
	static unsigned i;

	return buf[i++ % 16];
}

static const char *scaled(double n, const char *const *unit, size_t nunits,
			  const char *sep)
{
	char *b = next_buf();
	size_t i = 0;
	int digits;

	while (fabs(n) >= 999.5 && i + 1 < nunits) {
		n /= 1000;
		i++;
	}
	/* a whole number stays one; three samples a second are 2.83 */
	digits = i == 0 && rint(n) == n ? 0
		 : fabs(n) < 9.995	? 2
		 : fabs(n) < 99.95	? 1
					: 0;
	snprintf(b, 48, "%.*f%s%s", digits, n, sep, unit[i]);
	return b;
}

const char *human_bytes(double n)
{
	static const char *const unit[] = { "B", "kB", "MB", "GB", "TB", "PB" };

	return scaled(n, unit, 6, " ");
}

const char *human_count(double n)
{
	static const char *const unit[] = { "", " k", " M", " G", " T" };

	return scaled(n, unit, 5, "");
}

const char *human_time(double s)
{
	char *b = next_buf();

	/* by what is left when it is rounded: never "1000.0 us" */
	if (s < 0.9995e-6)
		snprintf(b, 48, "%.0f ns", s * 1e9);
	else if (s < 0.99995e-3)
		snprintf(b, 48, "%.1f us", s * 1e6);
	else if (s < 0.99995)
		snprintf(b, 48, "%.1f ms", s * 1e3);
	else if (s < 119.995)
		snprintf(b, 48, "%.2f s", s);
	else
		snprintf(b, 48, "%.0f min %02.0f s", floor(rint(s) / 60),
			 fmod(rint(s), 60));
	return b;
}

const char *grouped(uint64_t n)
{
	char *b = next_buf(), digits[32];
	int len = snprintf(digits, sizeof(digits), "%" PRIu64, n), to = 0;

	for (int i = 0; i < len; i++) {
		if (i && (len - i) % 3 == 0)
			b[to++] = ',';
		b[to++] = digits[i];
	}
	b[to] = '\0';
	return b;
}

const char *counted(uint64_t n, const char *what)
{
	char *b = next_buf();

	snprintf(b, 48, "%s %s%s", grouped(n), what, n == 1 ? "" : "s");
	return b;
}

const char *shape_text(const int64_t *shape, uint32_t ndim)
{
	static char buf[PEN_MAX_DIMS * 21 + 8];
	size_t at = 0;

	if (!ndim)
		return "scalar";
	for (uint32_t i = 0; i < ndim; i++) {
		at += (size_t)snprintf(buf + at, sizeof(buf) - at, "%s",
				       i ? "x" : "");
		at += (size_t)(shape[i] < 0
				       ? snprintf(buf + at, sizeof(buf) - at,
						  "?")
				       : snprintf(buf + at, sizeof(buf) - at,
						  "%" PRId64, shape[i]));
	}
	return buf;
}

void json_field(struct pen_text *j, const struct pen_field *f)
{
	pen__json_str(j, "name", f->name);
	pen__json_str(j, "dtype", pen_dtype_name(f->dtype));
	pen__json_str(j, "shape", shape_text(f->shape, f->ndim));
}

void progress_start(struct progress *p, const char *what, uint64_t total)
{
	*p = (struct progress){ .what = what,
				.total = total,
				.start_ns = pen__now_ns(),
				.tty = isatty(STDERR_FILENO) };
}

void progress_show(struct progress *p, uint64_t done, double bytes)
{
	uint64_t now = p->tty ? pen__now_ns() : 0;
	double s = (double)(now - p->start_ns) / 1e9, rate;

	if (!p->tty || s < 2 || now - p->shown_ns < 200000000)
		return;
	rate = (double)done / s;
	fprintf(stderr, "\r\033[K%s%s", p->title ? shown(p->title) : "",
		p->title ? ": " : "");
	fprintf(stderr, "%s %s", grouped(done), p->what);
	if (p->total)
		fprintf(stderr, " of %s (%.0f %%)", grouped(p->total),
			100.0 * (double)done / (double)p->total);
	fprintf(stderr, ", %s/s", human_count(rate));
	if (bytes > 0)
		fprintf(stderr, ", %s/s", human_bytes(bytes / s));
	if (p->total > done && rate > 0)
		fprintf(stderr, ", %s left",
			human_time((double)(p->total - done) / rate));
	fflush(stderr);
	p->shown_ns = now;
	p->shown = true;
}

void progress_end(struct progress *p)
{
	if (p->shown)
		fputs("\r\033[K", stderr);
	p->shown = false;
}

static volatile sig_atomic_t caught, below;
static atomic_bool asked;

static void on_signal(int sig)
{
	if (caught) {
		if (below)
			(void)!write(STDERR_FILENO, "\n", 1);
		signal(sig, SIG_DFL);
		raise(sig);
	}
	caught = sig;
	atomic_store(&asked, true);
}

void interrupt_install(void)
{
	struct sigaction sa = { .sa_handler = on_signal,
				.sa_flags = SA_RESTART };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
}

int interrupted(void)
{
	return caught;
}

const atomic_bool *interrupt_flag(void)
{
	return &asked;
}

void interrupt_below(bool on)
{
	below = on;
}

int text_out(struct pen_text *t, const char *path)
{
	struct pen_err err = { 0 };
	int rc = 0;

	if (path && strcmp(path, "-")) {
		rc = pen__text_save(t, path, &err);
	} else if (t->failed) {
		rc = pen__fail_nomem(&err, "output", t->n);
	} else {
		/* for programs as it is, for eyes without what would act */
		if (isatty(STDOUT_FILENO) && t->p)
			print_lines(t->p);
		else
			fwrite(t->p, 1, t->n, stdout);
		if (fflush(stdout) || ferror(stdout))
			rc = pen__fail_sys(&err, errno, "standard output",
					   "cannot be written");
	}
	pen__text_fini(t);
	return rc ? complain(&err) : 0;
}
