"""The paper's figures and claims: shipped studies, their parts and their pictures."""
