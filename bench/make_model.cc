// Writes a safetensors file of random f32 tensors: make_model OUT TENSORS BYTES SEED [CHANGED_PERCENT CHANGED_SEED]
// BYTES is the sum of the tensors' bytes, spread evenly. The first CHANGED_PERCENT of the tensors are drawn from
// CHANGED_SEED instead of SEED, so that two calls make a model and its derivative.
#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/text.h"
#include "os/sys.h"

namespace {

using namespace weft;

struct Plan {
  std::string path;
  std::uint64_t tensors = 0;
  std::uint64_t tensor_bytes = 0;
  std::uint64_t seed = 0;
  std::uint64_t changed = 0;
  std::uint64_t changed_seed = 0;
};

std::string header_of(const Plan& plan) {
  JsonWriter json;
  json.begin_object();
  for (std::uint64_t i = 0; i < plan.tensors; ++i) {
    json.key("dense." + std::to_string(i) + ".kernel").begin_object().member("dtype", "F32");
    json.key("shape").begin_array().value(plan.tensor_bytes / 4).end_array();
    json.key("data_offsets").begin_array();
    json.value(i * plan.tensor_bytes).value((i + 1) * plan.tensor_bytes).end_array().end_object();
  }
  json.end_object();
  std::string text = json.take();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string length;
  for (unsigned i = 0; i < 8; ++i) length += static_cast<char>(text.size() >> (8U * i));
  return length + text;
}

Status write_model(const Plan& plan) {
  WEFT_TRY(Fd out, open_file(plan.path, O_WRONLY | O_CREAT | O_TRUNC));
  std::string header = header_of(plan);
  WEFT_CHECK(append_exact(out.get(), std::as_bytes(std::span(header)), plan.path));
  std::vector<std::uint64_t> words((1U << 20U) / 8);
  for (std::uint64_t i = 0; i < plan.tensors; ++i) {
    std::mt19937_64 random((i < plan.changed ? plan.changed_seed : plan.seed) * 1'000'003 + i);
    for (std::uint64_t left = plan.tensor_bytes; left > 0;) {
      for (std::uint64_t& word : words) word = random();
      auto bytes = std::as_bytes(std::span(words)).first(std::min<std::uint64_t>(left, words.size() * 8));
      WEFT_CHECK(append_exact(out.get(), bytes, plan.path));
      left -= bytes.size();
    }
  }
  return sync_file(out.get(), plan.path);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::uint64_t> numbers;
  for (int i = 2; i < argc; ++i) numbers.push_back(parse_u64(argv[i]).value_or(0));
  if (numbers.size() != 3 && numbers.size() != 5) {
    std::fprintf(stderr, "usage: make_model OUT TENSORS BYTES SEED [CHANGED_PERCENT CHANGED_SEED]\n");
    return 2;
  }
  if (numbers[0] == 0) return 2;
  Plan plan{argv[1], numbers[0], numbers[1] / numbers[0] / 4 * 4, numbers[2], 0, 0};
  if (numbers.size() == 5) {
    plan.changed = plan.tensors * numbers[3] / 100;
    plan.changed_seed = numbers[4];
  }
  Status status = write_model(plan);
  if (!status.ok()) std::fprintf(stderr, "make_model: %s\n", status.error().message.c_str());
  return status.ok() ? 0 : 1;
}
