// BERT and relatives with the same layers, with the names of transformers and llama.cpp (GGUF).
#include "model/arch/table.h"

namespace weft {
namespace {

constexpr ArchRow kStem[] = {
    {"*word", "embeddings.word_embeddings|token_embd", "embedding", ""},
    {"position", "embeddings.position_embeddings|position_embd", "embedding", "",
     "type=position_embedding_type:absolute"},
    {"type", "embeddings.token_type_embeddings|token_types", "embedding", ""},
    {"norm", "embeddings.LayerNorm|token_embd_norm", "layer_norm", "word+position+type",
     "eps=layer_norm_eps|bert.attention.layer_norm_epsilon:1e-12"},
};

constexpr ArchRow kBlock[] = {
    {"*query", "encoder.layer.{}.attention.self.query|blk.{}.attn_q", "linear", "<"},
    {"*key", "encoder.layer.{}.attention.self.key|blk.{}.attn_k", "linear", "<"},
    {"*value", "encoder.layer.{}.attention.self.value|blk.{}.attn_v", "linear", "<"},
    {"*attention", "encoder.layer.{}.attention.output.dense|blk.{}.attn_output", "linear", "query,key,value",
     "heads=num_attention_heads|bert.attention.head_count:12"},
    {"*attention_norm", "encoder.layer.{}.attention.output.LayerNorm|blk.{}.attn_output_norm", "layer_norm",
     "attention+<", "eps=layer_norm_eps|bert.attention.layer_norm_epsilon:1e-12"},
    {"*up", "encoder.layer.{}.intermediate.dense|blk.{}.ffn_up", "linear", "attention_norm"},
    {"*down", "encoder.layer.{}.output.dense|blk.{}.ffn_down", "linear", "up", "act=hidden_act:gelu"},
    {"*out", "encoder.layer.{}.output.LayerNorm|blk.{}.layer_output_norm", "layer_norm", "down+attention_norm",
     "eps=layer_norm_eps|bert.attention.layer_norm_epsilon:1e-12"},
};

constexpr ArchRow kHeads[] = {
    {"pooler", "pooler.dense", "linear", "<", "out=pooler_act:tanh"},
    {"transform", "cls.predictions.transform.dense|lm_head.dense", "linear", "<"},
    {"transform_norm", "cls.predictions.transform.LayerNorm|lm_head.layer_norm", "layer_norm", "transform",
     "act=hidden_act:gelu eps=layer_norm_eps:1e-12"},
    {"decoder", "cls.predictions.decoder|lm_head.decoder", "linear", "transform_norm", "", "word"},
    {"decoder_bias", "cls.predictions|lm_head", "bias", "decoder"},
    {"next", "cls.seq_relationship", "linear", "pooler"},
    {"classifier_dense", "classifier.dense", "linear", "<"},
    {"classifier", "classifier.out_proj|classifier", "linear", "classifier_dense|pooler|<"},
    {"answers", "qa_outputs", "linear", "<"},
};

constexpr ArchSection kSections[] = {
    {.rows = kStem, .output = "norm|word"},
    {.rows = kBlock, .output = "out", .repeated = true},
    {.rows = kHeads, .output = "answers|classifier|decoder_bias|decoder|pooler|<"},
};

}  // namespace

const ArchTable kArchBert = {
    .family = "bert",
    .model_types = "bert roberta xlm-roberta camembert electra",
    .class_names = "Bert Roberta XLMRoberta",
    .prefixes = "bert. roberta. electra.",
    .ignored = "embeddings.position_ids|embeddings.token_type_ids",
    .ties_by_default = true,
    .sections = kSections,
};

}  // namespace weft
