/* Layer 9, metrics: figures of several runs, such as seeds. Runs are few and no sentences, so their means get Student's
 * t (Student 1908): paired where run i of one kind belongs to run i of the other, else without assuming that both
 * kinds spread alike (Welch 1947). The distribution is the incomplete beta function, by its continued fraction
 * (Abramowitz and Stegun 1964, 26.5.8; evaluated after Lentz 1976). */
#include <math.h>

#include <headwise/metrics.h>

/* ---- Student's t ------------------------------------------------------------------------------------------------- */

static double beta_fraction(double a, double b, double x)
{
    enum { TERMS = 1000 };
    static const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1), value;
    d = 1 / (fabs(d) < tiny ? tiny : d);
    value = d;
    for (int m = 1; m < TERMS; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        for (int k = 0; k < 2; k++) {
            double term = k ? odd : even;
            d = 1 + term * d;
            c = 1 + term / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            if (fabs(c) < tiny) c = tiny;
            value *= c * d;
        }
        if (fabs(c * d - 1) < 1e-15) break;
    }
    return value;
}

/* I_x(a, b); the fraction converges fast below the mean. */
static double incomplete_beta(double a, double b, double x)
{
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
    if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double hw_student_p(double t, double freedom)
{
    if (!isfinite(t)) return isnan(t) ? NAN : 0;
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t));
}

double hw_student_bound(double freedom, double p)
{
    double low = 0, high = 1;
    while (hw_student_p(high, freedom) > p) high *= 2;
    for (int i = 0; i < 200 && high - low > 1e-14 * high; i++) {
        double middle = (low + high) / 2;
        if (hw_student_p(middle, freedom) > p)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

/* ---- means of runs ----------------------------------------------------------------------------------------------- */

typedef struct moments {
    double mean, variance; /* of the mean */
} moments;

static moments moments_of(const double *x, int count)
{
    moments m = {0, 0};
    for (int i = 0; i < count; i++) m.mean += x[i] / count;
    for (int i = 0; i < count; i++) m.variance += (x[i] - m.mean) * (x[i] - m.mean);
    m.variance /= (double)count * (count - 1);
    return m;
}

/* Runs that do not spread at all tell nothing of how others would. */
static hw_difference student(double value, double variance, double freedom)
{
    hw_difference d = {.value = value, .low = NAN, .high = NAN, .p = NAN};
    if (!isfinite(value) || !isfinite(variance)) return d;
    if (variance <= 1e-30 * value * value) return value == 0 ? (hw_difference){.p = 1} : d;
    double error = sqrt(variance), half = hw_student_bound(freedom, 0.05) * error;
    return (hw_difference){
        .value = value, .low = value - half, .high = value + half, .p = hw_student_p(value / error, freedom)};
}

hw_difference hw_runs_mean(const double *x, int count)
{
    moments m = moments_of(x, count);
    return student(m.mean, m.variance, count - 1);
}

hw_difference hw_runs_difference(const double *a, int a_count, const double *b, int b_count, bool paired)
{
    moments of_a = moments_of(a, a_count), of_b = moments_of(b, b_count);
    double value = of_b.mean - of_a.mean;
    if (paired) {
        double variance = 0;
        for (int i = 0; i < a_count; i++) variance += (b[i] - a[i] - value) * (b[i] - a[i] - value);
        return student(value, variance / ((double)a_count * (a_count - 1)), a_count - 1);
    }
    double sum = of_a.variance + of_b.variance;
    double freedom =
        sum * sum / (of_a.variance * of_a.variance / (a_count - 1) + of_b.variance * of_b.variance / (b_count - 1));
    return student(value, sum, freedom);
}
