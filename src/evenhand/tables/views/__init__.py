"""Views: tables made out of tables by operations that keep users apart (proof: docs/proofs/views.md)."""
