// Llama and relatives with the same layers, with the names of transformers and llama.cpp (GGUF). llama.cpp permutes the
// rows of Llama's query and key, so layers of one shape may differ: `rope` tells them apart.
#include "model/arch/table.h"

namespace weft {
namespace {

constexpr std::string_view kNorm =
    "eps=rms_norm_eps|llama.attention.layer_norm_rms_epsilon|qwen2.attention.layer_norm_rms_epsilon|"
    "qwen3.attention.layer_norm_rms_epsilon:1e-06";
constexpr std::string_view kAttention =
    "heads=num_attention_heads|llama.attention.head_count|qwen2.attention.head_count|qwen3.attention.head_count "
    "kv_heads=num_key_value_heads|llama.attention.head_count_kv|qwen2.attention.head_count_kv|"
    "qwen3.attention.head_count_kv rope=general.architecture:half "
    "theta=rope_theta|rope_parameters.rope_theta|llama.rope.freq_base|qwen2.rope.freq_base|qwen3.rope.freq_base:10000 "
    "scaling=rope_scaling.rope_type|rope_scaling.type|rope_parameters.rope_type|llama.rope.scaling.type:default "
    "factor=rope_scaling.factor|rope_parameters.factor|llama.rope.scaling.factor window=sliding_window";

constexpr ArchRow kStem[] = {
    {"*token", "embed_tokens|token_embd", "embedding", ""},
};

constexpr ArchRow kBlock[] = {
    {"*norm_1", "layers.{}.input_layernorm|blk.{}.attn_norm", "rms_norm", "<", kNorm},
    {"*query", "layers.{}.self_attn.q_proj|blk.{}.attn_q", "linear", "norm_1"},
    {"*key", "layers.{}.self_attn.k_proj|blk.{}.attn_k", "linear", "norm_1"},
    {"*value", "layers.{}.self_attn.v_proj|blk.{}.attn_v", "linear", "norm_1"},
    {"query_norm", "layers.{}.self_attn.q_norm|blk.{}.attn_q_norm", "rms_norm", "query", kNorm},
    {"key_norm", "layers.{}.self_attn.k_norm|blk.{}.attn_k_norm", "rms_norm", "key", kNorm},
    {"*attention", "layers.{}.self_attn.o_proj|blk.{}.attn_output", "linear", "query_norm|query,key_norm|key,value",
     kAttention},
    {"sum_1", "", "add", "<+attention"},
    {"*norm_2", "layers.{}.post_attention_layernorm|blk.{}.ffn_norm", "rms_norm", "sum_1", kNorm},
    {"*gate", "layers.{}.mlp.gate_proj|blk.{}.ffn_gate", "linear", "norm_2"},
    {"*up", "layers.{}.mlp.up_proj|blk.{}.ffn_up", "linear", "norm_2"},
    {"*down", "layers.{}.mlp.down_proj|blk.{}.ffn_down", "linear", "gate,up", "act=hidden_act:silu"},
    {"sum_2", "", "add", "sum_1+down"},
};

constexpr ArchRow kHeads[] = {
    {"norm", "norm|output_norm", "rms_norm", "<", kNorm},
    {"head", "lm_head|output", "linear", "norm|<", "", "token"},
    {"score", "score", "linear", "norm|<"},
};

constexpr ArchSection kSections[] = {
    {.rows = kStem, .output = "token"},
    {.rows = kBlock, .output = "sum_2", .repeated = true},
    {.rows = kHeads, .output = "score|head|norm|<"},
};

}  // namespace

const ArchTable kArchLlama = {
    .family = "llama",
    .model_types = "llama mistral qwen2 qwen3",
    .class_names = "Llama Mistral Qwen2For Qwen3For",
    .prefixes = "model.",
    .ignored = "layers.{}.self_attn.rotary_emb.inv_freq|rotary_emb.inv_freq|rope_freqs.weight",
    .ties_by_default = false,
    .sections = kSections,
};

}  // namespace weft
