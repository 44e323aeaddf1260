/*
 * See classes.h. The regression is fitted by Newton's method, on vectors scaled
 * to a mean of 0 and a deviation of 1.
 */
#include "classes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

#define FOLDS 5
#define TURNS 25 /* of Newton's method; it needs about six */

static char *trim(char *line)
{
	line[strcspn(line, "\r\n")] = '\0';
	return line;
}

/* Reads the lines; name: the two labels. */
static int read_lines(struct classes *c, FILE *f, const char *path,
		      struct pen_err *err)
{
	char line[256], name[2][256] = { "", "" };
	uint64_t i = 0, n[2] = { 0, 0 };

	for (; fgets(line, sizeof(line), f); i++) {
		unsigned k = 0;

		trim(line);
		while (k < 2 && n[k] && strcmp(name[k], line) != 0)
			k++;
		if (k == 2)
			return fail_at(err, PEN_EINVAL, path,
				       "has more than two labels: '%.40s', "
				       "'%.40s', '%.40s'",
				       name[0], name[1], line);
		if (i < c->n)
			c->of[i] = (uint8_t)k;
		snprintf(name[k], sizeof(name[k]), "%s", line);
		n[k]++;
	}
	if (i != c->n)
		return fail_at(err, PEN_EINVAL, path,
			       "has %llu labels for %llu sequences",
			       (unsigned long long)i, (unsigned long long)c->n);
	if (n[0] < FOLDS || n[1] < FOLDS)
		return fail_at(err, PEN_EINVAL, path,
			       "must have at least %d sequences of each of two "
			       "labels",
			       FOLDS);
	return 0;
}

int classes_read(struct classes *c, const char *path, uint64_t n,
		 struct pen_err *err)
{
	FILE *f = fopen(path, "re");
	int rc;

	*c = (struct classes){ .n = n };
	if (!f)
		return fail_sys(err, path);
	c->of = calloc(n ? n : 1, 1);
	rc = c->of ? read_lines(c, f, path, err) : fail_nomem(err, "labels");
	fclose(f);
	if (rc)
		classes_fini(c);
	return rc;
}

void classes_fini(struct classes *c)
{
	free(c->of);
	c->of = NULL;
}

/* Solves a x = b for a positive definite n x n matrix (Cholesky), in place. */
static void solve(double *a, double *b, uint32_t n)
{
	for (uint32_t j = 0; j < n; j++) {
		for (uint32_t k = 0; k < j; k++)
			for (uint32_t i = j; i < n; i++)
				a[i * n + j] -= a[i * n + k] * a[j * n + k];
		a[j * n + j] = sqrt(a[j * n + j]);
		for (uint32_t i = j + 1; i < n; i++)
			a[i * n + j] /= a[j * n + j];
	}
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = 0; k < i; k++)
			b[i] -= a[i * n + k] * b[k];
		b[i] /= a[i * n + i];
	}
	for (uint32_t i = n; i-- > 0;) {
		for (uint32_t k = i + 1; k < n; k++)
			b[i] -= a[k * n + i] * b[k];
		b[i] /= a[i * n + i];
	}
}

struct fit {
	const double *x; /* n x p, the last column is 1 */
	const uint8_t *y, *fold;
	uint64_t n;
	uint32_t p;
	double *w, *step, *h; /* weights; p, p x p */
};

static double score(const struct fit *f, uint64_t i)
{
	double s = 0;

	for (uint32_t d = 0; d < f->p; d++)
		s += f->w[d] * f->x[i * f->p + d];
	return s;
}

/* One step of Newton's method over all but one fold; returns its size. */
static double turn(struct fit *f, unsigned but)
{
	double size = 0;

	for (uint32_t d = 0; d < f->p; d++) {
		const bool bias = d + 1 == f->p;

		memset(f->h + d * f->p, 0, f->p * sizeof(*f->h));
		f->h[d * f->p + d] = bias ? 1e-9 : 1;
		f->step[d] = bias ? 0 : -f->w[d];
	}
	for (uint64_t i = 0; i < f->n; i++) {
		const double *x = f->x + i * f->p;
		double q, r;

		if (f->fold[i] == but)
			continue;
		q = 1 / (1 + exp(-score(f, i)));
		r = q * (1 - q);
		for (uint32_t d = 0; d < f->p; d++) {
			f->step[d] += (f->y[i] - q) * x[d];
			for (uint32_t k = 0; k <= d; k++)
				f->h[d * f->p + k] += r * x[d] * x[k];
		}
	}
	solve(f->h, f->step, f->p);
	for (uint32_t d = 0; d < f->p; d++) {
		f->w[d] += f->step[d];
		size += fabs(f->step[d]);
	}
	return size;
}

static double accuracy_of(struct fit *f)
{
	double sum = 0;

	for (unsigned but = 0; but < FOLDS; but++) {
		uint64_t right = 0, n = 0;

		memset(f->w, 0, f->p * sizeof(*f->w));
		for (int i = 0; i < TURNS && turn(f, but) > 1e-6; i++)
			;
		for (uint64_t i = 0; i < f->n; i++) {
			n += f->fold[i] == but;
			right += f->fold[i] == but &&
				 (score(f, i) > 0) == f->y[i];
		}
		sum += (double)right / (double)n / FOLDS;
	}
	return sum;
}

/* Every fold has its share of both classes. */
static void spread_folds(const uint8_t *y, uint64_t n, uint8_t *fold)
{
	uint64_t seen[2] = { 0, 0 };

	for (uint64_t i = 0; i < n; i++)
		fold[i] = (uint8_t)(seen[y[i]]++ % FOLDS);
}

static void scale(double *x, const float *v, uint64_t n, uint32_t dim)
{
	for (uint32_t d = 0; d < dim; d++) {
		double mean = 0, square = 0;

		for (uint64_t i = 0; i < n; i++)
			mean += (double)v[i * dim + d] / (double)n;
		for (uint64_t i = 0; i < n; i++) {
			const double off = (double)v[i * dim + d] - mean;

			square += off * off / (double)n;
		}
		for (uint64_t i = 0; i < n; i++)
			x[i * (dim + 1) + d] = ((double)v[i * dim + d] - mean) /
					       (square > 0 ? sqrt(square) : 1);
	}
	for (uint64_t i = 0; i < n; i++)
		x[i * (dim + 1) + dim] = 1;
}

static void shuffle(uint8_t *y, uint64_t n)
{
	uint64_t z = 1;

	for (uint64_t i = n; i-- > 1;) {
		uint64_t k;
		uint8_t t;

		z = z * 6364136223846793005u + 1442695040888963407u;
		k = (z >> 33) % (i + 1);
		t = y[i];
		y[i] = y[k];
		y[k] = t;
	}
}

int classes_accuracy(const struct classes *c, const float *v, uint32_t dim,
		     double *accuracy, double *shuffled)
{
	const uint32_t p = dim + 1;
	double *x = calloc(c->n, p * sizeof(*x));
	double *own = calloc((size_t)p * p + 2 * (size_t)p, sizeof(*own));
	uint8_t *y = calloc(c->n, 2);
	struct fit f = { .x = x, .y = y, .n = c->n, .p = p };
	int rc = x && own && y ? 0 : PEN_ENOMEM;

	if (!rc) {
		f.fold = y + c->n;
		f.w = own;
		f.step = own + p;
		f.h = own + 2 * (size_t)p;
		scale(x, v, c->n, dim);
		memcpy(y, c->of, c->n);
		spread_folds(y, c->n, y + c->n);
		*accuracy = accuracy_of(&f);
		shuffle(y, c->n);
		spread_folds(y, c->n, y + c->n);
		*shuffled = accuracy_of(&f);
	}
	free(x);
	free(own);
	free(y);
	return rc;
}
