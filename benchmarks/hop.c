/* What walklearn is measured against: the same walk as a plain C loop, one token.
 *
 * The work of a hop is that of `walklearn.walk_sgd.step` with one row per node, the logistic
 * loss, a penalty and a ball, and it leaves the same things behind: the model, the weighted
 * sum for its average, the sum of the steps, the number of messages and of visits per node.
 *
 * It is written the way one would write it in an afternoon, and given every help that does
 * not change the algorithm: `restrict`, -O3 -march=native -ffast-math, inlined xoshiro256+,
 * one fused loop for update, average and norm. Compile it without -ffast-math at the linking
 * step, which would otherwise flush denormals for the whole Python process.
 */
#include <math.h>
#include <stdint.h>

/* The arrays of walklearn's `Chain` and `Data`, under their names. */
typedef struct {
    const int32_t *indptr, *indices;   /* neighbours of i: indices[indptr[i] .. indptr[i+1]) */
    const double *score;               /* accept j with min(1, score[j] / score[i]) */
    const double *scale;               /* the factor of grad f_i: mean L / L_i */
    const double *rows;                /* row i at rows + i * dimension */
    const double *targets, *weights;   /* y_i = +-1, c_i */
    int64_t dimension;
    double penalty, radius;
    double constant, exponent;         /* gamma_k = constant / k^exponent */
} Setting;

typedef struct {
    double *model, *sum;               /* w, sum of gamma_k w_k */
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

void walk(const Setting *setting, Token *token, int64_t hops) {
    const Setting s = *setting;
    const int64_t d = s.dimension, last = token->updates + hops;
    double *restrict w = token->model, *restrict sum = token->sum;
    uint64_t random[4] = {token->random[0], token->random[1], token->random[2], token->random[3]};
    int64_t i = token->node;

    for (int64_t k = token->updates + 1; k <= last; k++) {
        const double *restrict x = s.rows + i * d;
        token->visits[i]++;

        /* the gradient at node i */
        double z = 0.0;
        for (int64_t a = 0; a < d; a++) z += x[a] * w[a];
        const double gamma = s.constant / pow((double)k, s.exponent);
        const double step = gamma * s.scale[i];
        const double slope = -s.targets[i] / (1.0 + exp(s.targets[i] * z));
        const double keep = 1.0 - step * s.penalty;
        const double push = step * s.weights[i] * slope;

        /* average, update, norm */
        double squared_norm = 0.0;
        for (int64_t a = 0; a < d; a++) {
            sum[a] += gamma * w[a];
            w[a] = keep * w[a] - push * x[a];
            squared_norm += w[a] * w[a];
        }
        token->step_size_sum += gamma;
        if (squared_norm > s.radius * s.radius) {
            const double shrink = s.radius / sqrt(squared_norm);
            for (int64_t a = 0; a < d; a++) w[a] *= shrink;
            token->projections++;
        }

        /* one random number proposes a neighbour, another one accepts */
        const int32_t first = s.indptr[i], degree = s.indptr[i + 1] - first;
        const int64_t j = s.indices[first + (int32_t)(uniform(random) * degree)];
        if (uniform(random) * s.score[i] <= s.score[j]) {
            i = j;
            token->messages++;
        }
    }
    token->node = i;
    token->updates = last;
    for (int n = 0; n < 4; n++) token->random[n] = random[n];
}

/* The physical limit: read random rows and do nothing with them but add up their entries. */
double gather(const double *rows, int64_t dimension, const int32_t *which, int64_t count) {
    double total = 0.0;
    for (int64_t n = 0; n < count; n++) {
        const double *x = rows + which[n] * dimension;
        for (int64_t a = 0; a < dimension; a++) total += x[a];
    }
    return total;
}
