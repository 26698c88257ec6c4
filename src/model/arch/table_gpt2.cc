// GPT-2, with the names of transformers (whose Conv1D keeps weights as [in, out]) and llama.cpp (GGUF).
#include "model/arch/table.h"

namespace weft {
namespace {

constexpr std::string_view kNorm = "eps=layer_norm_epsilon|gpt2.attention.layer_norm_epsilon:1e-05";

constexpr ArchRow kStem[] = {
    {"*token", "wte|token_embd", "embedding", ""},
    {"*position", "wpe|position_embd", "embedding", ""},
    {"stem", "", "add", "token+position"},
};

constexpr ArchRow kBlock[] = {
    {"*norm_1", "h.{}.ln_1|blk.{}.attn_norm", "layer_norm", "<", kNorm},
    {"*qkv", "h.{}.attn.c_attn|blk.{}.attn_qkv", "linear_t|linear", "norm_1"},
    {"*attention", "h.{}.attn.c_proj|blk.{}.attn_output", "linear_t|linear", "qkv",
     "heads=n_head|gpt2.attention.head_count:12"},
    {"sum_1", "", "add", "<+attention"},
    {"*norm_2", "h.{}.ln_2|blk.{}.ffn_norm", "layer_norm", "sum_1", kNorm},
    {"*up", "h.{}.mlp.c_fc|blk.{}.ffn_up", "linear_t|linear", "norm_2"},
    {"*down", "h.{}.mlp.c_proj|blk.{}.ffn_down", "linear_t|linear", "up", "act=activation_function:gelu_new"},
    {"sum_2", "", "add", "sum_1+down"},
};

constexpr ArchRow kHeads[] = {
    {"norm", "ln_f|output_norm", "layer_norm", "<", kNorm},
    {"head", "lm_head|output", "linear", "norm|<", "", "token"},
    {"score", "score", "linear", "norm|<"},
};

constexpr ArchSection kSections[] = {
    {.rows = kStem, .output = "stem"},
    {.rows = kBlock, .output = "sum_2", .repeated = true},
    {.rows = kHeads, .output = "score|head|norm|<"},
};

}  // namespace

const ArchTable kArchGpt2 = {
    .family = "gpt2",
    .model_types = "gpt2",
    .class_names = "GPT2",
    .prefixes = "transformer.",
    .ignored = "h.{}.attn.bias|h.{}.attn.masked_bias",
    .ties_by_default = true,
    .sections = kSections,
};

}  // namespace weft
