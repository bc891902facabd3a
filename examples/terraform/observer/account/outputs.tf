output "role_arn" {
  description = "The role that Driftline takes on here."
  value       = aws_iam_role.observer.arn
}
