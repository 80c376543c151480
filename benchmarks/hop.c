/* What walklearn is measured against: the same walks as plain C loops, one token each.
 *
 * The work of a hop is that of `walklearn.visit.visit` with a penalty and a ball, and it
 * leaves the same things behind: the model, the weighted sum for its average, the sum of the
 * steps, the number of messages and of visits per node. `walk` is for one row per node and the
 * logistic loss, `walk_rows` for any number of rows or a mini-batch of them, `walk_classes` for
 * softmax.
 *
 * They are written the way one would write them in an afternoon, and given every help that does
 * not change the algorithm: `restrict`, -O3 -march=native -ffast-math, inlined xoshiro256+,
 * one fused loop for update, average and norm. Compile them without -ffast-math at the linking
 * step, which would otherwise flush denormals for the whole Python process.
 */
#include <math.h>
#include <stdint.h>

/* The arrays of walklearn's `Chain` and `Data`, under their names. */
typedef struct {
    const int32_t *indptr, *indices;   /* neighbours of i: indices[indptr[i] .. indptr[i+1]) */
    const double *score;               /* accept j with min(1, score[j] / score[i]) */
    const double *scale;               /* the factor of grad f_i: mean L / L_i */
    const double *rows;                /* row r at rows + r * dimension */
    const double *targets, *weights;   /* y_r = +-1 or a class, c_r */
    const int64_t *offsets;            /* rows of node i: offsets[i] .. offsets[i+1] */
    int64_t dimension, outputs, batch; /* batch: rows of a visit, 0 for all of the node's */
    double penalty, radius;
    double constant, exponent;         /* gamma_k = constant / k^exponent */
} Setting;

typedef struct {
    double *model, *sum;               /* w, sum of gamma_k w_k */
    double *gradient, *scores;         /* room for those of a visit */
    double *picks;                     /* the numbers that picked the last visit's rows */
    int64_t *visits;                   /* per node */
    double step_size_sum;
    int64_t node, updates, messages, projections;
    uint64_t random[4];                /* the state of xoshiro256+ */
} Token;

/* xoshiro256+ of Blackman and Vigna: a double in [0, 1). */
static inline double uniform(uint64_t s[4]) {
    const uint64_t result = s[0] + s[3], t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = (s[3] << 45) | (s[3] >> 19);
    return (double)(result >> 11) * 0x1.0p-53;
}

/* One random number proposes a neighbour, another one accepts. */
static inline int64_t hop(const Setting *s, int64_t i, uint64_t random[4]) {
    const int32_t first = s->indptr[i], degree = s->indptr[i + 1] - first;
    const int64_t j = s->indices[first + (int32_t)(uniform(random) * degree)];
    return uniform(random) * s->score[i] <= s->score[j] ? j : i;
}

static inline double slope(double target, double score) {
    return -target / (1.0 + exp(target * score));
}

static inline double dot(const double *restrict x, const double *restrict w, int64_t d) {
    double z = 0.0;
    for (int64_t a = 0; a < d; a++) z += x[a] * w[a];
    return z;
}

/* Average, update, projection: sum += gamma w, then w <- keep w - push g. */
static inline void descend(Token *token, const double *restrict g, double gamma, double keep,
                           double push, double radius, int64_t size) {
    double *restrict w = token->model, *restrict sum = token->sum;
    double squared_norm = 0.0;
    for (int64_t a = 0; a < size; a++) {
        sum[a] += gamma * w[a];
        w[a] = keep * w[a] - push * g[a];
        squared_norm += w[a] * w[a];
    }
    token->step_size_sum += gamma;
    if (squared_norm > radius * radius) {
        const double shrink = radius / sqrt(squared_norm);
        for (int64_t a = 0; a < size; a++) w[a] *= shrink;
        token->projections++;
    }
}

static inline void one_row(const Setting *s, Token *token, int64_t i, double gamma, double step,
                           uint64_t random[4]) {
    (void)random;
    const double *x = s->rows + i * s->dimension;
    const double z = dot(x, token->model, s->dimension);
    descend(token, x, gamma, 1.0 - step * s->penalty,
            step * s->weights[i] * slope(s->targets[i], z), s->radius, s->dimension);
}

static inline void any_rows(const Setting *s, Token *token, int64_t i, double gamma, double step,
                            uint64_t random[4]) {
    const int64_t d = s->dimension, first = s->offsets[i], count = s->offsets[i + 1] - first;
    const int picked = 0 < s->batch && s->batch < count;
    const int64_t visited = picked ? s->batch : count;
    const double share = picked ? (double)count / (double)s->batch : 1.0;
    const double *restrict w = token->model;
    double *restrict g = token->gradient;
    for (int64_t a = 0; a < d; a++) g[a] = 0.0;
    for (int64_t n = 0; n < visited; n++) {
        int64_t r = first + n;
        if (picked) {
            token->picks[n] = uniform(random);
            r = first + (int64_t)(token->picks[n] * count);
        }
        const double *restrict x = s->rows + r * d;
        const double push = share * s->weights[r] * slope(s->targets[r], dot(x, w, d));
        for (int64_t a = 0; a < d; a++) g[a] += push * x[a];
    }
    descend(token, g, gamma, 1.0 - step * s->penalty, step, s->radius, d);
}

/* One row per node, of a class; the model is a vector for each class. */
static inline void classes(const Setting *s, Token *token, int64_t i, double gamma, double step,
                           uint64_t random[4]) {
    (void)random;
    const int64_t d = s->dimension, m = s->outputs;
    const double *restrict x = s->rows + i * d;
    double *restrict z = token->scores, *restrict g = token->gradient;
    double top = -INFINITY, total = 0.0;
    for (int64_t c = 0; c < m; c++) {
        z[c] = dot(x, token->model + c * d, d);
        top = z[c] > top ? z[c] : top;
    }
    for (int64_t c = 0; c < m; c++) {
        z[c] = exp(z[c] - top);
        total += z[c];
    }
    for (int64_t c = 0; c < m; c++) {
        const double push = s->weights[i] * (z[c] / total - (c == (int64_t)s->targets[i]));
        for (int64_t a = 0; a < d; a++) g[c * d + a] = push * x[a];
    }
    descend(token, g, gamma, 1.0 - step * s->penalty, step, s->radius, m * d);
}

/* The same loop for each kind of update; a macro, so that each is inlined into its own. */
#define WALK(NAME, UPDATE)                                                                        \
    void NAME(const Setting *setting, Token *token, int64_t hops) {                               \
        const Setting s = *setting;                                                               \
        const int64_t last = token->updates + hops;                                               \
        uint64_t random[4];                                                                       \
        int64_t i = token->node;                                                                  \
        for (int n = 0; n < 4; n++) random[n] = token->random[n];                                 \
        for (int64_t k = token->updates + 1; k <= last; k++) {                                    \
            const double gamma = s.constant / pow((double)k, s.exponent);                         \
            token->visits[i]++;                                                                   \
            UPDATE(&s, token, i, gamma, gamma * s.scale[i], random);                              \
            const int64_t j = hop(&s, i, random);                                                 \
            token->messages += j != i;                                                            \
            i = j;                                                                                \
        }                                                                                         \
        token->node = i;                                                                          \
        token->updates = last;                                                                    \
        for (int n = 0; n < 4; n++) token->random[n] = random[n];                                 \
    }

WALK(walk, one_row)
WALK(walk_rows, any_rows)
WALK(walk_classes, classes)

/* The physical limit: read random rows and do nothing with them but add up their entries. */
double gather(const double *rows, int64_t dimension, const int32_t *which, int64_t count) {
    double total = 0.0;
    for (int64_t n = 0; n < count; n++) {
        const double *x = rows + which[n] * dimension;
        for (int64_t a = 0; a < dimension; a++) total += x[a];
    }
    return total;
}
