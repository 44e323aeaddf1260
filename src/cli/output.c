/* What people and programs see: messages, numbers, progress, JSON, files. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/cli.h"

int complain(const struct pen_err *err)
{
	fprintf(stderr, "penstock: %s%s%s\n", err->where,
		err->where[0] ? ": " : "", err->msg);
	switch (err->code) {
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

int complain_usage(const char *fmt, ...)
{
	va_list ap;

	fputs("penstock: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
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
	digits = i == 0 ? 0 : fabs(n) < 9.995 ? 2 : fabs(n) < 99.95 ? 1 : 0;
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

	if (s < 1e-6)
		snprintf(b, 48, "%.0f ns", s * 1e9);
	else if (s < 1e-3)
		snprintf(b, 48, "%.1f us", s * 1e6);
	else if (s < 1)
		snprintf(b, 48, "%.1f ms", s * 1e3);
	else if (s < 120)
		snprintf(b, 48, "%.2f s", s);
	else
		snprintf(b, 48, "%.0f min %02.0f s", floor(s / 60),
			 fmod(s, 60));
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

uint64_t peak_memory(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (uint64_t)u.ru_maxrss * 1024;
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
	fprintf(stderr, "\r\033[K%s %s", grouped(done), p->what);
	if (p->total)
		fprintf(stderr, " of %s (%.0f %%)", grouped(p->total),
			100.0 * (double)done / (double)p->total);
	fprintf(stderr, ", %s/s", human_count(rate));
	if (bytes > 0)
		fprintf(stderr, ", %s/s", human_bytes(bytes / s));
	if (p->total && rate > 0)
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

static volatile sig_atomic_t caught;

static void on_signal(int sig)
{
	if (caught) {
		signal(sig, SIG_DFL);
		raise(sig);
	}
	caught = sig;
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

/* A comma where one is due, a new line, and the key. */
static void json_key(struct json *j, const char *key)
{
	if (j->depth) {
		fputs(j->first ? "\n" : ",\n", j->out);
		fprintf(j->out, "%*s", j->depth * 2, "");
	}
	j->first = false;
	if (key)
		fprintf(j->out, "\"%s\": ", key);
}

void json_open(struct json *j, const char *key, char bracket)
{
	json_key(j, key);
	fputc(bracket, j->out);
	j->depth++;
	j->first = true;
}

void json_close(struct json *j, char bracket)
{
	j->depth--;
	if (!j->first)
		fprintf(j->out, "\n%*s", j->depth * 2, "");
	fputc(bracket, j->out);
	j->first = false;
	if (!j->depth)
		fputc('\n', j->out);
}

/* Length of the UTF-8 sequence at s, or 0 when it is not one. */
static size_t utf8_len(const unsigned char *s)
{
	size_t n = *s < 0x80		     ? 1
		   : *s >= 0xc2 && *s < 0xe0 ? 2
		   : *s >= 0xe0 && *s < 0xf0 ? 3
		   : *s >= 0xf0 && *s < 0xf5 ? 4
					     : 0;

	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

void json_str(struct json *j, const char *key, const char *value)
{
	const unsigned char *s = (const unsigned char *)value;

	json_key(j, key);
	fputc('"', j->out);
	while (*s) {
		size_t n = utf8_len(s);

		if (!n) { /* a byte that is no text: shown, not passed on */
			fputs("\\ufffd", j->out);
			n = 1;
		} else if (*s < 0x20 || *s == '<' || *s == 0x7f) {
			fprintf(j->out, "\\u%04x", *s);
		} else if (*s == '"' || *s == '\\') {
			fprintf(j->out, "\\%c", *s);
		} else {
			fwrite(s, 1, n, j->out);
		}
		s += n;
	}
	fputc('"', j->out);
}

void json_int(struct json *j, const char *key, uint64_t value)
{
	json_key(j, key);
	fprintf(j->out, "%" PRIu64, value);
}

void json_num(struct json *j, const char *key, double value)
{
	json_key(j, key);
	if (isfinite(value))
		fprintf(j->out, "%.9g", value);
	else
		fputs("null", j->out);
}

void json_bool(struct json *j, const char *key, bool value)
{
	json_key(j, key);
	fputs(value ? "true" : "false", j->out);
}

int outfile_open(struct outfile *o, const char *path)
{
	struct pen_err err = { 0 };

	*o = (struct outfile){ 0 };
	if (!strcmp(path, "-")) {
		o->f = stdout;
		return 0;
	}
	snprintf(o->path, sizeof(o->path), "%s", path);
	snprintf(o->tmp, sizeof(o->tmp), "%s.%ld.tmp", o->path, (long)getpid());
	o->f = fopen(o->tmp, "we");
	if (o->f)
		return 0;
	pen__fail_sys(&err, errno, path, "cannot be written");
	return complain(&err);
}

int outfile_close(struct outfile *o)
{
	struct pen_err err = { 0 };
	bool bad = ferror(o->f) || fflush(o->f);

	if (o->f == stdout && !bad)
		return 0;
	if (o->f != stdout) {
		bad = fclose(o->f) || bad;
		if (!bad && rename(o->tmp, o->path) == 0)
			return 0;
		unlink(o->tmp);
	}
	pen__fail_sys(&err, errno, o->path[0] ? o->path : "standard output",
		      "cannot be written");
	return complain(&err);
}
